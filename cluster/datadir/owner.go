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

// ownerFile, in each of a shard's directories, names the server that they belong
// to, so that parts of two directories are not taken for one.
const ownerFile = "owner"

// ClaimShard makes the directory of a shard, checks that its log and its state are
// both there and both of this server, and marks them as its own on the first start.
// The state is marked first, so a crash in between does not look like a loss.
func ClaimShard(shardDir, serverID string) error {
	if err := errors.Join(durable.MkdirAll(vfs.Default, shardDir), syncAbove(shardDir)); err != nil {
		return fmt.Errorf("shard directory: %w", err)
	}
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
	return errors.Join(
		durable.Replace(vfs.Default, filepath.Join(dir, ownerFile), []byte(serverID+"\n")),
		durable.SyncDir(vfs.Default, filepath.Dir(dir)),
	)
}

// syncAbove makes the name of path durable, in case the process that made it
// ended before it could. A directory above that we may not read is not ours, and
// nor is the name.
func syncAbove(path string) error {
	if err := durable.SyncDir(vfs.Default, filepath.Dir(path)); !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}
