package fsm

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// headerWalk is the walk over the existing jobs after the index_headers of topics with jobs
// changed. In the order of seqs it adds and removes entries of the header index. Another
// change restarts it, so there is one at a time. Its zero value: none.
type headerWalk struct {
	limit uint64 // jobs from this seq on were added since
	next  uint64 // jobs before this seq are done
	names []walkedHeader
}

// walkedHeader is a header that some settings began or ceased to name.
type walkedHeader struct {
	name string
	// added: some topic has begun to index it, so a search for it may miss jobs.
	added bool
}

func (w *headerWalk) underWay() bool { return w.limit != 0 }

// ahead reports whether the walk has yet to process a job.
func (w *headerWalk) ahead(seq uint64) bool { return seq >= w.next && seq < w.limit }

// unsure reports whether it is unknown if a job has its entry for a header.
func (w *headerWalk) unsure(seq uint64, name string) bool {
	return w.ahead(seq) && slices.ContainsFunc(w.names, func(h walkedHeader) bool { return h.name == name })
}

// misses reports whether a search for a header may miss jobs.
func (w *headerWalk) misses(name string) bool {
	return slices.Contains(w.names, walkedHeader{name, true})
}

// note adds a header to those of the walk.
func (w *headerWalk) note(name string, added bool) {
	for i := range w.names {
		if h := &w.names[i]; h.name == name {
			h.added = h.added || added
			return
		}
	}
	w.names = append(w.names, walkedHeader{name, added})
}

func (w *headerWalk) append(b []byte) []byte {
	b = append(b, formatVersion)
	b = binary.BigEndian.AppendUint64(b, w.limit)
	b = binary.BigEndian.AppendUint64(b, w.next)
	for _, h := range w.names {
		added := byte(0)
		if h.added {
			added = 1
		}
		b = append(b, added, byte(len(h.name)))
		b = append(b, h.name...)
	}
	return b
}

func decodeHeaderWalk(b []byte) (w headerWalk, err error) {
	if err := checkVersion("record of the walk over headers", b, formatVersion); err != nil {
		return headerWalk{}, err
	}
	if len(b) < 17 {
		return headerWalk{}, fmt.Errorf("record of the walk over headers has %d bytes: %w", len(b), errShort)
	}
	w.limit, w.next = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])
	for b = b[17:]; len(b) > 0; {
		if len(b) < 2 || len(b) < 2+int(b[1]) || b[0] > 1 {
			return headerWalk{}, fmt.Errorf("name in the walk over headers: %w", errShort)
		}
		n := 2 + int(b[1])
		w.names = append(w.names, walkedHeader{string(b[2:n]), b[0] == 1})
		b = b[n:]
	}
	return w, nil
}

// indexSettings updates the counts of headers for changed settings, and begins a walk if the
// topic, which may be nil, has jobs.
func (x *tx) indexSettings(t *topic, old, made *jobpb.TopicSettings) {
	if sameIndex(old, made) {
		return
	}
	w := &x.m.meta.walk
	walk := t != nil && t.jobs() > 0
	change := func(names []string, than *jobpb.TopicSettings, by int) {
		for _, name := range names {
			if indexes(than, name) {
				continue
			}
			x.countHeader(name, by)
			if walk {
				w.note(name, by > 0)
			}
		}
	}
	change(old.GetIndexHeaders(), made, -1)
	change(made.GetIndexHeaders(), old, +1)
	if walk {
		w.limit, w.next = x.m.meta.state.nextSeq, 1
		x.walkBegan = true
		x.saveHeaderWalk()
	}
}

// countHeader changes how many topics index a header.
func (x *tx) countHeader(name string, by int) {
	n := x.m.headerTopics[name] + by
	x.key = appendHeaderNameKey(x.key[:0], name)
	if n == 0 {
		delete(x.m.headerTopics, name)
		must(x.batch.Delete(x.key, nil))
		return
	}
	x.m.headerTopics[name] = n
	must(x.batch.Set(x.key, binary.BigEndian.AppendUint32(nil, uint32(n)), nil))
}

func (x *tx) saveHeaderWalk() {
	w := &x.m.meta.walk
	if !w.underWay() {
		must(x.batch.Delete(keyHeaderWalk, nil))
		return
	}
	x.value = w.append(x.value[:0])
	must(x.batch.Set(keyHeaderWalk, x.value, nil))
}

// walkShare is by how much less an Advance does of the walk than of what is due: the steps
// follow each other at once and must leave the other operations most of the time.
const walkShare = 4

// walkHeaders processes the next jobs of the walk, at most most of them.
func (x *tx) walkHeaders(most uint32) error {
	w := &x.m.meta.walk
	if !w.underWay() || x.walkBegan {
		return nil // in the entry of the change the store does not have all jobs yet
	}
	done, err := x.eachJob(w.next, w.limit, most, func(rec *record) error {
		t, err := x.topicOf(rec)
		if err != nil {
			return err
		}
		err = x.reindex(rec, t.settings, t.settings)
		w.next = rec.seq + 1
		return err
	})
	if err == nil && done {
		*w = headerWalk{}
	}
	x.saveHeaderWalk()
	return err
}

// eachJob calls act for up to most of the jobs in [from, limit) and reports whether no job is
// left. It ends early at large jobs (sweepBytes). Deleted jobs that the store still has do
// not count toward most: their number depends on how the log was divided into batches. The
// store must have all of the jobs.
func (x *tx) eachJob(from, limit uint64, most uint32, act func(*record) error) (done bool, err error) {
	it, err := x.db.NewIter(&pebble.IterOptions{
		LowerBound: appendSeqKey(nil, spaceSpec, from), UpperBound: appendSeqKey(nil, spaceSpec, limit),
	})
	if err != nil {
		return false, err
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = cerr
		}
	}()
	bytes := 0
	for it.First(); it.Valid(); it.Next() {
		seq, err := seqOfKey(it.Key())
		if err != nil {
			return false, err
		}
		rec, err := x.job(seq, false)
		if err != nil {
			return false, err
		}
		if rec == nil {
			continue
		}
		if most == 0 || bytes >= sweepBytes {
			return false, nil
		}
		if err := act(rec); err != nil {
			return false, err
		}
		bytes += rec.bodyLen
		most--
	}
	return true, it.Error()
}
