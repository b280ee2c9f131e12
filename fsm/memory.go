package fsm

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/auth"
	"tarry/fsm/internal/record"
	"tarry/fsm/internal/window"
	"tarry/job"
	"tarry/job/jobpb"
)

// memory is the part of the state that the applying goroutine keeps in memory. All of
// it is also in the store or can be derived from it, so it changes no result.
type memory struct {
	meta     record.Meta
	limits   *job.Limits // of the cluster version
	topics   map[string]*topic
	byNumber map[uint32]*topic
	// allHaveJobs: no topic is without jobs; false: not known. It saves dropIdleTopics work.
	allHaveJobs bool
	spares      int                             // topics that go at the limit, as of the last commit
	settings    map[string]*jobpb.TopicSettings // by topic, which need not be in topics
	targets     int                             // settings with a target
	// headerTopics counts the settings that name a header for the index.
	headerTopics map[string]int
	due          dueHeap
	dueChanges   dueChanges
	recent       recent

	bounds bounds
	held   int // places in all windows, as of the last commit

	scheduleCount int
	auth          *auth.State // not nil
	changeBytes   []int       // of the changes that the config log keeps
	// removed is when each removed node was removed, never 0. It is replaced, never changed.
	removed map[string]int64
	// admission is who may become a member. It is replaced, never changed, and not nil.
	admission *jobpb.Admission
	// namespaces are in the order of their prefixes.
	namespaces []*namespace
}

// load reads everything that is kept in memory.
func load(db *pebble.DB, o Options) (mem memory, pub public, err error) {
	mem = memory{
		topics: make(map[string]*topic), byNumber: make(map[uint32]*topic),
		headerTopics: make(map[string]int),
		bounds:       o.bounds,
	}
	pub = public{forgotten: make(map[string]struct{}), topics: make(map[string]TopicChange)}
	if mem.meta, err = record.ReadMeta(db); err != nil {
		return mem, pub, err
	}
	mem.limits = o.limitsAt(mem.meta.Version)
	mem.meta.State.NextSeq = max(mem.meta.State.NextSeq, 1)
	err = record.Scan(db, []byte{record.SpaceForgotten}, []byte{record.SpaceForgotten + 1}, func(key, _ []byte) error {
		pub.forgotten[string(key[1:])] = struct{}{}
		return nil
	})
	if err != nil {
		return mem, pub, err
	}
	if mem.removed, err = record.ReadRemoved(db); err != nil {
		return mem, pub, err
	}
	if mem.admission, err = record.ReadAdmission(db); err != nil {
		return mem, pub, err
	}
	pub.removed, pub.admission = mem.removed, mem.admission
	gathered, err := record.ReadDueCounts(db, record.KeyDueChanges)
	if err != nil {
		return mem, pub, err
	}
	mem.dueChanges.gathered.Add(gathered)
	if mem.changeBytes, err = readChangeBytes(db); err != nil {
		return mem, pub, err
	}
	if mem.auth, err = record.ReadAuth(db); err != nil {
		return mem, pub, err
	}
	if mem.namespaces, err = loadNamespaces(db); err != nil {
		return mem, pub, err
	}
	if err := mem.loadSettings(db); err != nil {
		return mem, pub, err
	}
	err = record.Scan(db, []byte{record.SpaceTopic}, []byte{record.SpaceTopic + 1}, func(key, value []byte) error {
		rec, err := record.DecodeTopic(value)
		if err != nil {
			return fmt.Errorf("topic %q: %w", key[1:], err)
		}
		mem.addTopic(&topic{Topic: rec, name: string(key[1:])})
		return nil
	})
	if err != nil {
		return mem, pub, err
	}
	for _, t := range mem.topics {
		pub.topics[t.name] = mem.updateDue(t)
	}
	if pub.schedules, mem.scheduleCount, err = loadSchedules(db); err != nil {
		return mem, pub, err
	}
	pub.copyMeta(&mem.meta)
	pub.uses = mem.uses()
	return mem, pub, nil
}

// loadSettings reads the settings of topics, and counts what they name.
func (mem *memory) loadSettings(db *pebble.DB) (err error) {
	mem.settings, err = record.ReadAllSettings(db)
	for topic, s := range mem.settings {
		mem.countSettings(topic, nil, s)
		if s.Push != nil {
			mem.targets++
		}
		for _, name := range s.IndexHeaders {
			mem.headerTopics[name]++
		}
	}
	return err
}

// copyMeta copies what other goroutines may read of the meta keyspace.
func (pub *public) copyMeta(meta *record.Meta) {
	pub.applied, pub.durable = meta.Applied(), meta.Durable
	pub.clusterID, pub.sharding = meta.ClusterID, meta.Sharding
	pub.replacedAt = meta.Replaced.Index
	pub.upload = meta.Upload.ID
	pub.standby = meta.Standby
	pub.configLog, pub.configGroup = meta.ConfigLog, meta.ConfigGroup
}

// addTopic adds a topic. The windows of its empty lists are complete; the others are read
// on demand, from the head on.
func (mem *memory) addTopic(t *topic) {
	t.position = -1
	t.settings = mem.settings[t.name]
	t.limits = limitsOf(t.settings)
	t.namespace = mem.namespaceOf(t.name)
	t.counted = t.events()
	mem.topics[t.name] = t
	mem.byNumber[t.Number] = t
	for s := range t.windows {
		t.windows[s] = window.New(t.Counts[s] == 0, t.Heads[s], mem.capacity())
	}
	mem.noteEmpty(t)
}

func (mem *memory) dropTopic(t *topic) {
	t.dropped = true
	delete(mem.topics, t.name)
	delete(mem.byNumber, t.Number)
	mem.due.set(t, 0)
	mem.held -= t.held
	t.held = 0
}

// head is the first place of a topic's list, read from the store if the window
// does not have it.
func (mem *memory) head(db *pebble.DB, t *topic, list record.List) (record.Place, bool, error) {
	w := &t.windows[list]
	if t.Counts[list] == 0 {
		return record.Place{}, false, nil
	}
	if w.Len() == 0 {
		err := w.Load(t.Counts[list], storedList(db, t.listID(list)))
		if err != nil {
			return record.Place{}, false, fmt.Errorf("topic %q, jobs in %s: %w", t.name, list, err)
		}
	}
	return w.Live()[0], true, nil
}

// refresh updates the heads in a topic's record.
func (mem *memory) refresh(db *pebble.DB, t *topic) error {
	for list := record.ListDelayed; list < record.ListCount; list++ {
		p, _, err := mem.head(db, t, list)
		if err != nil {
			return err
		}
		p.Carried = 0
		t.Heads[list] = p
	}
	return nil
}

// updateDue updates the topic's place in the due heap, and returns what the leader must
// know of the topic.
func (mem *memory) updateDue(t *topic) TopicChange {
	next := record.Earlier(t.Heads[record.ListDelayed].Instant, t.Heads[record.ListReserved].Instant)
	change := TopicChange{Name: t.name, Ready: t.Counts[record.ListReady], NextDue: next}
	var nextToken int64
	if t.limits != nil {
		nextToken = t.applyLimits(&change)
	}
	switch {
	case t.Paused():
		// No job is handed out before the pause ends.
		switch {
		case t.PausedUntil == job.NeverMS:
			change.NextDue = 0
		case change.Ready > 0:
			change.NextDue = t.PausedUntil
		case change.NextDue != 0:
			change.NextDue = max(change.NextDue, t.PausedUntil)
		}
		change.Ready, change.Held = 0, 0
		if t.PausedUntil != job.NeverMS {
			next = record.Earlier(next, t.PausedUntil)
		}
	case t.Jobs() == 0:
		next = t.keptUntil()
	default:
		next = record.Earlier(next, nextToken)
	}
	next = record.Earlier(next, t.Heads[record.ListEnded].Instant)
	next = record.Earlier(next, t.nextExpiry())
	if t.needsExpiryIndex() {
		next = atOnce
	}
	mem.due.set(t, next)
	return change
}

// earliest returns the instant of the next Advance; 0: there is nothing to do.
func (mem *memory) earliest() int64 {
	if mem.meta.Reset.UnderWay() || mem.meta.Walk.UnderWay() {
		return atOnce
	}
	return mem.due.earliest()
}

// capacity returns one window's share of the budget.
func (mem *memory) capacity() int {
	share := mem.bounds.windowBudget / (record.StateLists * max(len(mem.topics), 1))
	return min(mem.bounds.windowCap, max(share, min(windowFloor, mem.bounds.windowCap)))
}

// count updates held for one topic, after a commit.
func (mem *memory) count(t *topic) {
	mem.held -= t.held
	t.held = 0
	for s := range t.windows {
		t.windows[s].Capacity = mem.capacity()
		t.held += t.windows[s].Len()
	}
	mem.held += t.held
}

// trimWindows cuts every window down to half of its share once they hold more
// than the budget together. It runs between transactions, and seldom: half the
// budget must be read again before the next time.
func (mem *memory) trimWindows() {
	floor := record.StateLists * len(mem.topics) * mem.capacity()
	if mem.held <= max(mem.bounds.windowBudget, floor) {
		return
	}
	for _, t := range mem.topics {
		for s := range t.windows {
			t.windows[s].Trim(mem.capacity() / 2)
			t.windows[s].Committed()
		}
		mem.count(t)
	}
}

// limitUses is an array because each commit makes one.
type limitUses [8]job.LimitUse

// noteEmpty counts the topics without jobs that make room for others at the limit. It is called when a
// topic has changed.
func (mem *memory) noteEmpty(t *topic) {
	if now := !t.dropped && t.Jobs() == 0 && !t.Paused(); now != t.spare {
		t.spare = now
		if now {
			mem.spares++
		} else {
			mem.spares--
		}
	}
}

// uses lists the limits of the whole cluster. Idle topics do not count from the cluster version on in
// which they go when others need their place.
func (mem *memory) uses() limitUses {
	topics := len(mem.topics)
	if mem.meta.Version >= 2 {
		topics -= mem.spares
	}
	return limitUses{
		{What: "topics with jobs", Used: topics, Most: mem.limits.MaxTopics},
		{What: "topics with settings", Used: len(mem.settings), Most: mem.limits.MaxTopics},
		{What: "push targets", Used: mem.targets, Most: mem.limits.MaxPushTargets},
		{What: "schedules", Used: mem.scheduleCount, Most: mem.limits.MaxSchedules},
		{What: "namespaces", Used: len(mem.namespaces), Most: mem.limits.MaxNamespaces},
		{What: "tokens", Used: mem.auth.Tokens(), Most: mem.limits.MaxTokens},
		{What: "invitations", Used: len(mem.admission.GetInvitations()), Most: mem.limits.MaxInvitations},
		{What: "removed nodes", Used: len(mem.removed), Most: mem.limits.MaxRemovedNodes},
	}
}

// LimitUses returns how much of the limits of the whole cluster is in use.
func (m *Machine) LimitUses() []job.LimitUse {
	m.mu.RLock()
	uses := m.public.uses
	m.mu.RUnlock()
	return uses[:]
}

// recentKept bounds the records of one generation. Two generations, at about 300 bytes a
// record, take 20 MB.
const recentKept = 1 << 15

// recent caches recently used records, without bodies: a job that was just reserved will
// soon be finished. It changes no result.
//
// It has two generations. A full young one replaces the old one.
type recent struct {
	young, old map[uint64]*record.Job
}

// recentText bounds the reasons, options and history of a cached record, in bytes.
const recentText = 128

// put caches a record, which must be as in the store.
func (r *recent) put(rec *record.Job) {
	if len(rec.Status.Reason)+len(rec.Status.LastError)+len(rec.Spec.Options)+len(rec.Status.History) > recentText {
		return
	}
	if r.young == nil || len(r.young) >= recentKept {
		r.old, r.young = r.young, make(map[uint64]*record.Job)
	}
	rec.Body, rec.OwnBody = nil, false
	r.young[rec.Seq] = rec
}

// take removes a record and returns it, for the caller to change; nil: it is not cached.
func (r *recent) take(seq uint64) *record.Job {
	if rec := r.young[seq]; rec != nil {
		delete(r.young, seq)
		return rec
	}
	rec := r.old[seq]
	if rec != nil {
		delete(r.old, seq)
	}
	return rec
}
