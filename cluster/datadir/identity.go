package datadir

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
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/internal/durable"
)

// identityVersion is the version of the data directory's layout.
const identityVersion = 2

const (
	incarnationBytes = 8
	maxIdentity      = 4 << 10 // bytes of node.json, far above what it takes
)

// identity is the content of node.json in the data directory. The incarnation
// distinguishes this directory from earlier ones of a node with the same name: a node that
// lost its disk has lost its votes too and must rejoin as a new member.
type identity struct {
	Version     int    `json:"version"`
	NodeID      string `json:"node_id"`
	Incarnation string `json:"incarnation"`
	Left        bool   `json:"left,omitempty"`      // the node left its cluster for good
	LogStore    string `json:"log_store,omitempty"` // empty: OriginalLogStore
	Shards      int    `json:"shards,omitempty"`    // of the cluster; 0: one
	Sum         string `json:"sum"`                 // CRC-32C of the rest, in hexadecimal digits
}

// OriginalLogStore is the log store of directories that name none, like those of the
// releases that had no other. Those releases refuse a directory that names one.
const OriginalLogStore = "raft-wal"

func (i identity) serverID() string { return i.NodeID + "." + i.Incarnation }

func (d *Dir) file() string { return filepath.Join(d.path, "node.json") }

func (d *Dir) load(nodeID, logStore string) error {
	data, err := os.ReadFile(d.file())
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(d.Shard(0)); err == nil {
			return unusable{fmt.Errorf("%s is missing but %s holds a shard: the node's identity is lost; %s", d.file(), d.path, recovery(d.path))}
		}
		var raw [incarnationBytes]byte
		rand.Read(raw[:])
		d.id = identity{Version: identityVersion, NodeID: nodeID, Incarnation: hex.EncodeToString(raw[:])}
		if logStore != OriginalLogStore {
			d.id.LogStore = logStore
		}
		return d.save()
	}
	if errors.Is(err, syscall.EIO) { // the disk has lost it
		return WithRejoin(fmt.Errorf("read the node's identity: %w", err), d.path)
	}
	if err != nil {
		return fmt.Errorf("read the node's identity: %w", err)
	}
	if d.id, err = decodeIdentity(data); err != nil {
		return unusable{fmt.Errorf("%s is damaged: %w; %s", d.file(), err, recovery(d.path))}
	}
	if err := d.foreign(nodeID, logStore); err != nil {
		return unusable{err}
	}
	return nil
}

// foreign returns an error if the directory is not one of this node, this release and this log store.
func (d *Dir) foreign(nodeID, logStore string) error {
	switch {
	case d.id.Version > identityVersion:
		return fmt.Errorf("data directory %s has layout version %d, this release knows only %d: it was written by a newer release. If none has run here, %s is damaged; %s", d.path, d.id.Version, identityVersion, d.file(), recovery(d.path))
	case d.id.Version < identityVersion:
		return fmt.Errorf("data directory %s has layout version %d, this release knows only %d: it was written by an older release; %s", d.path, d.id.Version, identityVersion, recovery(d.path))
	case d.id.NodeID != nodeID:
		return fmt.Errorf("data directory %s belongs to node %q, but --node-id is %q", d.path, d.id.NodeID, nodeID)
	case logStore != "" && logStore != d.LogStore():
		return fmt.Errorf("data directory %s was made with --log-store %s, but --log-store is %s: a directory keeps its log store: leave the flag out. To change the log store while the other nodes are a majority and run, move the directory away and start the node with --join: it rejoins as a new member", d.path, d.LogStore(), logStore)
	case d.id.Left:
		return fmt.Errorf("the node of data directory %s has left its cluster; to let the node join again as a new member, run \"tarry cluster admit\" on another node, move the directory away and start the node with --join", d.path)
	}
	return nil
}

// encode returns the only form that an identity has in its file.
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

// decodeIdentity accepts only what encode returns. For another version of the layout only
// the version is valid.
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
		return identity{}, errors.New("its content has changed")
	}
	return id, nil
}

// save writes the identity durably and atomically.
func (d *Dir) save() error {
	data, err := d.id.encode()
	if err != nil {
		return err
	}
	if err := durable.Replace(vfs.Default, d.file(), data); err != nil {
		return fmt.Errorf("write the node's identity: %w", err)
	}
	return nil
}
