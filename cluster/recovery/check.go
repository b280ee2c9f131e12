package recovery

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tarry/cluster/backup"
	"tarry/cluster/datadir"
	"tarry/cluster/logstore"
	"tarry/fsm"
	"tarry/fsm/check"
)

// CheckReport is what Check has found in the data directory of a stopped node.
type CheckReport struct {
	NodeID, ServerID, LogStore string
	Log                        logstore.Found
	AppliedIndex               uint64
	Counts                     backup.Counts // of the state
	Problems                   []Problem     // empty: nothing is damaged
}

// Problem is something that is damaged, or does not fit with the rest.
type Problem struct {
	Part string // identity, votes, log or state
	Err  error
}

// ErrBegun is the problem of a directory in which a recovery was interrupted.
var ErrBegun = errors.New("a recovery has begun here and not ended: run the same tarry recover again, to its end")

// Readable returns why RecoverReadable would not bring the directory to a start; nil: it would,
// if what is damaged is the end of the log.
func (c *CheckReport) Readable() error {
	damaged, elsewhere := false, ""
	for _, p := range c.Problems {
		switch {
		case p.Part == "log":
			damaged = true
		case elsewhere == "" && !errors.Is(p.Err, ErrBegun):
			elsewhere = fmt.Sprintf("%s: %v", p.Part, p.Err)
		}
	}
	switch {
	case elsewhere != "" && damaged:
		return fmt.Errorf("not only the log is damaged, but also: %s", elsewhere)
	case elsewhere != "":
		return fmt.Errorf("--discard-damaged-end is for a damaged log, and this one is whole; what is damaged: %s", elsewhere)
	case !damaged:
		return errors.New("the log is not damaged: leave --discard-damaged-end out")
	case c.LogStore != string(logstore.RaftWAL):
		return fmt.Errorf("the damaged end of a log of %s cannot be removed, only that of one of %s", c.LogStore, logstore.RaftWAL)
	case c.Log.FirstDamaged > c.AppliedIndex:
		return fmt.Errorf("not only the end of the log is damaged: entry %d is, and is not in the state", c.Log.FirstDamaged)
	}
	return nil
}

// Keeps returns the index up to which RecoverReadable would keep everything.
func (c *CheckReport) Keeps() uint64 { return max(c.Log.Last, c.AppliedIndex) }

func (c *CheckReport) problem(part string, err error) {
	if err != nil {
		c.Problems = append(c.Problems, Problem{part, err})
	}
}

// Check reads everything in the data directory of a stopped node with its checksums, and checks
// that it fits together. It changes nothing: the state is opened in tempDir, with links to its
// tables. It returns an error if the directory cannot be checked.
func Check(dataDir, tempDir string) (c CheckReport, err error) {
	shard := datadir.ShardIn(dataDir, 0)
	_, identityErr := os.Stat(filepath.Join(dataDir, "node.json"))
	_, shardErr := os.Stat(shard)
	if identityErr != nil && shardErr != nil {
		return c, fmt.Errorf("%s is no data directory of a node: %w", dataDir, identityErr)
	}
	if datadir.InUse(dataDir) {
		return c, fmt.Errorf("data directory %s is in use: stop its node first", dataDir)
	}
	dir, err := datadir.OpenToRead(dataDir)
	if err != nil {
		c.problem("identity", err)
		c.LogStore = datadir.OriginalLogStore
		if _, err := os.Stat(filepath.Join(shard, "raft", "raft.db")); err == nil {
			c.LogStore = string(logstore.RaftBoltDB)
		}
	} else {
		defer func() { err = errors.Join(err, dir.Close()) }()
		c.NodeID, c.ServerID, c.LogStore = dir.NodeID(), dir.ServerID(), dir.LogStore()
		recovering, err := dir.Recovering()
		if recovering {
			err = ErrBegun
		}
		c.problem("identity", err)
		c.problem("identity", datadir.CheckShard(shard, c.ServerID))
	}
	var found map[string][]error
	c.Log, found = logstore.Check(filepath.Join(shard, "raft"), logstore.Kind(c.LogStore))
	for _, part := range []string{"votes", "log"} {
		for _, err := range found[part] {
			c.problem(part, err)
		}
	}
	temp, err := os.MkdirTemp(tempDir, "tarry-check-")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := c.state(filepath.Join(shard, "fsm"), temp); err != nil {
		// The copy is gone when somebody reads this.
		c.problem("state", errors.New(strings.ReplaceAll(err.Error(), temp, filepath.Join(shard, "fsm"))))
		return c, nil
	}
	if c.Log.First > c.AppliedIndex+1 {
		c.problem("state", fmt.Errorf("it ends with entry %d, but the log begins with entry %d: the entries in between are lost", c.AppliedIndex, c.Log.First))
	}
	return c, nil
}

// state opens a copy of the state and reads all of it.
func (c *CheckReport) state(from, temp string) (err error) {
	if err := linkState(from, temp); err != nil {
		return err
	}
	s := new(stores)
	defer func() { err = errors.Join(err, s.close()) }()
	if s.machine, err = fsm.Open(temp, fsm.Options{OnFatal: s.fail}); err != nil {
		return err
	}
	a := s.machine.Applied()
	c.AppliedIndex = a.Index
	if a.Term > c.Log.Term {
		c.problem("votes", fmt.Errorf("they have come to term %d, but the state holds entries of term %d: they are lost or of an older copy", c.Log.Term, a.Term))
	}
	v := s.machine.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	if err := check.Records(v, nil); err != nil {
		return err
	}
	c.Counts, err = countsOf(s.machine)
	return err
}

// linkState makes a copy of a state's directory: symbolic links to its tables, which never
// change, and copies of the small files, which the store replaces when it opens them.
func linkState(from, to string) error {
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case strings.HasSuffix(name, ".sst"):
			return os.Symlink(path, target)
		}
		return copyFile(path, target)
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
