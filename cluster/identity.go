package cluster

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tarry/cluster/diskspace"
)

// identityVersion is the version of the data directory's layout.
const identityVersion = 2

const (
	incarnationBytes = 8
	maxIdentity      = 4 << 10 // bytes of node.json, far above what it takes
)

// identity is what node.json in the data directory holds. The incarnation tells
// this directory from any other that a node of the same name had before: a node
// that lost its disk has lost its votes too and must come back as a new member.
type identity struct {
	Version     int    `json:"version"`
	NodeID      string `json:"node_id"`
	Incarnation string `json:"incarnation"`
	Left        bool   `json:"left,omitempty"` // the node left its cluster for good
	Sum         string `json:"sum"`            // CRC-32C of the rest, in hexadecimal digits
}

func (i identity) serverID() string { return i.NodeID + "." + i.Incarnation }

// dataDir is a data directory that this process alone uses.
type dataDir struct {
	path string
	lock *os.File
	id   identity
}

// openDataDir makes or opens the directory, locks it, and reads or gives its
// identity. It refuses one that is in use, of another node, of a newer layout,
// or of a node that has left its cluster.
func openDataDir(path, nodeID string) (*dataDir, error) {
	if err := makeDir(path); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is in use by another process", path)
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	d := &dataDir{path: path, lock: lock}
	err = d.load(nodeID)
	if err == nil {
		err = d.closeToOthers()
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return d, nil
}

// closeToOthers takes away what others may do with the files of a directory that an
// older release made. It leaves the directory itself as it is: it may be a mount
// point, or hold more than a node's data. What is below a shard's directory cannot
// be reached without it.
func (d *dataDir) closeToOthers() error {
	for _, name := range []string{"lock", filepath.Base(d.file()), diskspace.BallastFile, shardDir(0)} {
		path := filepath.Join(d.path, name)
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = os.Chmod(path, info.Mode().Perm()&^0o077)
		}
		// A file system without modes has none to change.
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("close the data directory to other users: %w", err)
		}
	}
	return nil
}

func (d *dataDir) file() string { return filepath.Join(d.path, "node.json") }

func (d *dataDir) load(nodeID string) error {
	data, err := os.ReadFile(d.file())
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(d.path, shardDir(0))); err == nil {
			return fmt.Errorf("%s is missing but %s holds a shard: the node's identity is lost; move the directory away, and the node will rejoin as a new member", d.file(), d.path)
		}
		var raw [incarnationBytes]byte
		rand.Read(raw[:])
		d.id = identity{Version: identityVersion, NodeID: nodeID, Incarnation: hex.EncodeToString(raw[:])}
		return d.save()
	}
	if err != nil {
		return fmt.Errorf("read the node's identity: %w", err)
	}
	if d.id, err = decodeIdentity(data); err != nil {
		return fmt.Errorf("%s is damaged (%w): move the directory away, and the node will rejoin as a new member", d.file(), err)
	}
	switch {
	case d.id.Version > identityVersion:
		return fmt.Errorf("data directory %s has layout version %d, this release knows only %d: it was written by a newer release. If none has run here, %s is damaged; %s", d.path, d.id.Version, identityVersion, d.file(), wayOut(d.path))
	case d.id.Version < identityVersion:
		return fmt.Errorf("data directory %s has layout version %d, this release knows only %d: it was written by an older release; %s", d.path, d.id.Version, identityVersion, wayOut(d.path))
	case d.id.NodeID != nodeID:
		return fmt.Errorf("data directory %s belongs to node %q, but --node-id is %q", d.path, d.id.NodeID, nodeID)
	case d.id.Left:
		return fmt.Errorf("the node of data directory %s has left its cluster; to join again as a new member, move the directory away", d.path)
	}
	return nil
}

// encode is the one form in which an identity stands in its file.
func (i identity) encode() ([]byte, error) {
	i.Sum = ""
	rest, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	i.Sum = fmt.Sprintf("%08x", crc32.Checksum(rest, crc32.MakeTable(crc32.Castagnoli)))
	data, err := json.MarshalIndent(i, "", "  ")
	return append(data, '\n'), err
}

// decodeIdentity reads what encode made, and nothing else. Of another version it
// promises nothing but the version.
func decodeIdentity(data []byte) (identity, error) {
	if len(data) > maxIdentity {
		return identity{}, fmt.Errorf("it has more than %d bytes", maxIdentity)
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil {
		return identity{}, err
	}
	if id.Version < 1 {
		return identity{}, errors.New("it has no version")
	}
	if id.Version != identityVersion {
		return id, nil
	}
	if raw, err := hex.DecodeString(id.Incarnation); err != nil || hex.EncodeToString(raw) != id.Incarnation || len(raw) != incarnationBytes {
		return identity{}, fmt.Errorf("its incarnation is %.40q, which is not %d hexadecimal digits", id.Incarnation, 2*incarnationBytes)
	}
	whole, err := id.encode()
	if err != nil {
		return identity{}, err
	}
	if !bytes.Equal(whole, data) {
		return identity{}, errors.New("it is not as it was written")
	}
	return id, nil
}

// save writes the identity durably: whole or not at all.
func (d *dataDir) save() error {
	data, err := d.id.encode()
	if err != nil {
		return err
	}
	if err := writeDurably(d.file(), data); err != nil {
		return fmt.Errorf("write the node's identity: %w", err)
	}
	return nil
}

// markLeft records that this directory's node is no longer part of its cluster.
func (d *dataDir) markLeft() error {
	d.id.Left = true
	return d.save()
}

func (d *dataDir) close() error { return d.lock.Close() }

// makeDir makes a directory and the missing ones above it, durably: whatever is
// synced below it would else vanish with its name when the power goes.
func makeDir(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	above := filepath.Dir(path)
	if above != path {
		if err := makeDir(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncDir(above)
}

// syncAbove makes the name of path durable, in case the process that made it
// ended before it could. A directory above that we may not read is not ours, and
// nor is the name.
func syncAbove(path string) error {
	if err := syncDir(filepath.Dir(path)); !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func shardDir(n uint32) string { return fmt.Sprintf("shard-%d", n) }

// ownerFile, in each of a shard's directories, names the server that they belong
// to, so that parts of two directories are not taken for one.
const ownerFile = "owner"

// claim checks that log and state of a shard are both there and both of this
// server, and marks them as its own on the first start. The state is marked
// first, so a crash in between does not look like a loss.
func claim(shardDir, serverID string) error {
	stateDir, logDir := filepath.Join(shardDir, "fsm"), filepath.Join(shardDir, "raft")
	state, err := ownerOf(stateDir)
	if err != nil {
		return err
	}
	log, err := ownerOf(logDir)
	if err != nil {
		return err
	}
	for dir, owner := range map[string]string{stateDir: state, logDir: log} {
		if owner != "" && owner != serverID {
			return fmt.Errorf("%s belongs to the incarnation %s, but the data directory to %s: they are parts of two copies", dir, owner, serverID)
		}
	}
	_, err = os.Stat(filepath.Join(stateDir, "CURRENT"))
	switch {
	case state == "" && log != "":
		return fmt.Errorf("the state is missing in %s, and its log is there", stateDir)
	case state != "" && log == "" && err == nil:
		return fmt.Errorf("the log is missing in %s, and its state is there", logDir)
	case state != "" && log != "":
		return nil
	}
	for _, dir := range []string{stateDir, logDir} {
		if err := writeOwner(dir, serverID); err != nil {
			return fmt.Errorf("mark %s as this node's: %w", dir, err)
		}
	}
	return nil
}

// ownerOf returns the server that a directory is marked for, else an empty text.
func ownerOf(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read whose directory it is: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

func writeOwner(dir, serverID string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(writeDurably(filepath.Join(dir, ownerFile), []byte(serverID+"\n")), syncDir(filepath.Dir(dir)))
}

// writeDurably replaces a file, whole or not at all.
func writeDurably(path string, data []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return err
}
