package logstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// Found is what the stores of a stopped node hold.
type Found struct {
	Term         uint64 // of the votes
	First, Last  uint64 // indexes; both are 0 for an empty log
	LastTerm     uint64 // of the last entry
	Acknowledged uint64 // the last entry by the watermark; 0: it has none
	FirstDamaged uint64 // the first entry that is there, but not as it was stored; 0: none
	CutOff       int64  // bytes of a write that a crash cut off, which the next start removes
}

// maxProblems bounds how many entries that cannot be read are reported.
const maxProblems = 5

// Check reads everything below dir with its checksums, as Open and Raft would, and changes
// nothing. No process may have the stores open. It returns what is damaged, by the name of the part.
func Check(dir string, kind Kind) (found Found, problems map[string][]error) {
	c := &check{problems: map[string][]error{}}
	votes, err := loadBallot(record{vfs.Default, dir, votesFile})
	c.problem("votes", err)
	c.found.Term = votes.term
	if kind == RaftBoltDB {
		c.bolt(dir, votes.term > 0)
	} else {
		c.wal(filepath.Join(dir, logDir), votes.term > 0)
	}
	if len(c.problems) == 0 && c.found.LastTerm > votes.term {
		c.problem("votes", fmt.Errorf("they have come to term %d, but the log holds entries of term %d: they are lost or of an older copy", votes.term, c.found.LastTerm))
	}
	return c.found, c.problems
}

type check struct {
	found    Found
	problems map[string][]error
	marked   commitMark
}

func (c *check) problem(part string, err error) {
	if err != nil && len(c.problems[part]) < maxProblems {
		c.problems[part] = append(c.problems[part], err)
	}
}

// entry takes the next entry of the log.
func (c *check) entry(index uint64, e *raft.Log, err error) {
	if err == nil && e.Index != index {
		err = fmt.Errorf("%w: its index is %d", ErrDamaged, e.Index)
	}
	if err == nil {
		err = verifyChecksum(e)
	}
	if err == nil && e.Term < c.found.LastTerm {
		err = fmt.Errorf("it has term %d, after one of term %d", e.Term, c.found.LastTerm)
	}
	if err == nil && index == c.marked.last && c.marked.term != 0 && e.Term != c.marked.term {
		err = fmt.Errorf("it is of term %d, and this node has acknowledged one of term %d: it is an older copy", e.Term, c.marked.term)
	}
	if err != nil {
		if at := fmt.Sprintf("entry %d: ", index); !strings.HasPrefix(err.Error(), at) {
			err = fmt.Errorf("%s%w", at, err)
		}
		c.problem("log", err)
		if c.found.FirstDamaged == 0 {
			c.found.FirstDamaged = index
		}
		return
	}
	if c.found.First == 0 {
		c.found.First = index
	}
	c.found.Last, c.found.LastTerm = index, e.Term
}

func (c *check) wal(walDir string, used bool) {
	files := walfs.New()
	filer := segment.NewFiler(walDir, files)
	list := segmentList{record{vfs.Default, walDir, listFile}}
	content, err := list.content()
	if err == nil {
		err = checkList(content.PersistentState, filer, used)
	}
	if err != nil {
		c.problem("log", err)
		return
	}
	if content.Watermark {
		c.marked, err = readWatermark(filepath.Join(walDir, walMarkFile), walMarkFile, 3)
		c.problem("log", err)
		c.found.Acknowledged = c.marked.last
	}
	end, err := checkWAL(walDir, files, content, c.marked)
	c.problem("log", err)
	if end.scan != nil && err == nil {
		c.found.CutOff = end.scan.used - end.scan.to
	}
	for _, s := range content.Segments {
		if s.SealTime.IsZero() {
			c.tail(walDir, files, s)
		} else {
			c.sealed(filer, s)
		}
	}
}

func (c *check) tail(walDir string, files types.VFS, s types.SegmentInfo) {
	f, err := files.OpenReader(walDir, segment.FileName(s))
	if errors.Is(err, os.ErrNotExist) {
		return // checkWAL has judged that
	}
	if err != nil {
		c.problem("log", err)
		return
	}
	index := s.BaseIndex
	_, err = scanSegment(f, s, func(data []byte) error {
		if index >= s.MinIndex {
			var e raft.Log
			c.entry(index, &e, decodeEntry(data, &e))
		}
		index++
		return nil
	})
	c.problem("log", errors.Join(err, f.Close()))
}

// sealed reads the entries of a full segment as Raft does.
func (c *check) sealed(filer *segment.Filer, s types.SegmentInfo) {
	r, err := filer.Open(s)
	if err != nil {
		c.problem("log", fmt.Errorf("segment %s: %w", segment.FileName(s), err))
		return
	}
	for i := s.MinIndex; i <= s.MaxIndex && len(c.problems["log"]) < maxProblems; i++ {
		var e raft.Log
		data, err := readEntry(r, i)
		if err == nil {
			err = decodeEntry(data, &e)
		}
		c.entry(i, &e, err)
	}
	c.problem("log", r.Close())
}

func readWatermark(path, name string, numbers int) (commitMark, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return commitMark{}, fmt.Errorf("%s: %w: it is missing", path, ErrFileDamaged)
	}
	if err != nil {
		return commitMark{}, err
	}
	mark, err := newWatermark(name, numbers).load(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return mark, errors.Join(err, f.Close())
}

func (c *check) bolt(dir string, used bool) {
	path := filepath.Join(dir, boltFile)
	mark, err := readWatermark(filepath.Join(dir, markFile), markFile, 2)
	c.problem("log", err)
	l := &boltLog{mark: &watermark{held: mark}}
	if mark.seq == 0 && !used {
		return // it was never used; the next start makes it
	}
	if err := l.check(path, true); err != nil {
		c.problem("log", fmt.Errorf("%s: %w", path, err))
		return
	}
	c.found.Acknowledged = mark.last
	options := boltOptions()
	options.ReadOnly = true
	err = l.run(func() (err error) {
		if l.bolt, err = raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: options}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.bolt.Close()) }()
		first, err := l.bolt.FirstIndex()
		if err != nil {
			return err
		}
		last, err := l.bolt.LastIndex()
		for i := first; err == nil && last > 0 && i <= last; i++ {
			var e raft.Log
			c.entry(i, &e, l.bolt.GetLog(i, &e))
		}
		return err
	})
	c.problem("log", err)
}
