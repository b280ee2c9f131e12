package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/internal/durable"
)

// ownerFile, in each of a shard's directories, names the server that the directory belongs
// to, so that parts of two data directories are not mixed.
const ownerFile = "owner"

// ClaimShard creates the directory of a shard on the first start and marks its log and its
// state as this server's. Later it checks that both exist and belong to this server. The
// state is marked first, so that a crash in between does not look like a loss.
func ClaimShard(shardDir, serverID string) error {
	if err := errors.Join(durable.MkdirAll(vfs.Default, shardDir), syncAbove(shardDir)); err != nil {
		return fmt.Errorf("shard directory: %w", err)
	}
	claimed, err := checkOwners(shardDir, serverID)
	if claimed || err != nil {
		return err
	}
	for _, dir := range []string{filepath.Join(shardDir, "fsm"), filepath.Join(shardDir, "raft")} {
		if err := writeOwner(dir, serverID); err != nil {
			return fmt.Errorf("mark %s as this node's: %w", dir, err)
		}
	}
	return nil
}

// CheckShard returns an error unless a shard's log and state exist and belong to a server. It
// changes nothing.
func CheckShard(shardDir, serverID string) error {
	claimed, err := checkOwners(shardDir, serverID)
	if err == nil && !claimed {
		err = fmt.Errorf("%s has no log and no state", shardDir)
	}
	return err
}

// checkOwners reports whether log and state belong to a server, or are not complete yet. It
// returns an error if one is lost, or belongs to another server.
func checkOwners(shardDir, serverID string) (claimed bool, err error) {
	stateDir, logDir := filepath.Join(shardDir, "fsm"), filepath.Join(shardDir, "raft")
	state, err := ownerOf(stateDir)
	if err != nil {
		return false, err
	}
	log, err := ownerOf(logDir)
	if err != nil {
		return false, err
	}
	for dir, owner := range map[string]string{stateDir: state, logDir: log} {
		if owner != "" && owner != serverID {
			return false, fmt.Errorf("%s belongs to the incarnation %s, but the data directory to %s: they are parts of two data directories", dir, owner, serverID)
		}
	}
	_, err = os.Stat(filepath.Join(stateDir, "CURRENT"))
	switch {
	case state == "" && log != "":
		return false, fmt.Errorf("the state is missing in %s, but its log exists", stateDir)
	case state != "" && log == "" && err == nil:
		return false, fmt.Errorf("the log is missing in %s, but its state exists", logDir)
	}
	return state != "" && log != "", nil
}

// ownerOf returns the server that a directory belongs to; empty: it has no mark.
func ownerOf(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the owner of the directory: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

func writeOwner(dir, serverID string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		durable.Replace(vfs.Default, filepath.Join(dir, ownerFile), []byte(serverID+"\n")),
		durable.SyncDir(vfs.Default, filepath.Dir(dir)),
	)
}

// syncAbove makes the name of path durable, in case the process that created it ended
// before it did so. If the directory above may not be read, the name was created by
// somebody else.
func syncAbove(path string) error {
	if err := durable.SyncDir(vfs.Default, filepath.Dir(path)); !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}
