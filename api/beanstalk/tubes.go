package beanstalk

import (
	"cmp"
	"slices"
	"sync"

	"tarry/internal/addrlimit"
)

// defaultTube is what every connection uses and watches at first.
const defaultTube = "default"

// maxTubes bounds the tubes that the connections of a node name: as many as topics with jobs. The clients
// of one address may bring half of them.
const maxTubes = 100_000

// tubes counts the connections of this node that name each tube. A tube is known here
// while there is one; the default tube always is.
type tubes struct {
	room  *addrlimit.Limit
	mu    sync.Mutex // held for as little as a copy of the names
	known map[string]*references
	named uint64 // how many have become known so far
}

// references counts the connections of this node that name one tube.
type references struct {
	using, watching, waiting int
	number                   uint64          // order of becoming known
	share                    addrlimit.Share // of the client that has made it known
}

func newTubes() *tubes {
	return &tubes{room: addrlimit.New(maxTubes, maxTubes/2), known: map[string]*references{defaultTube: {}}}
}

// change applies f to a tube's references and forgets the tube when none is left. It reports false,
// and does nothing, if the tube is not known yet and there are too many, or too many of this client's.
func (t *tubes) change(name string, share addrlimit.Share, f func(*references)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.known[name]
	if r == nil {
		if !share.TryAcquire(1) {
			return false
		}
		t.named++
		r = &references{number: t.named, share: share}
		t.known[name] = r
	}
	f(r)
	if r.using == 0 && r.watching == 0 && name != defaultTube {
		r.share.Release(1)
		delete(t.known, name)
	}
	return true
}

func (t *tubes) use(name string, by int, share addrlimit.Share) bool {
	return t.change(name, share, func(r *references) { r.using += by })
}

func (t *tubes) watch(name string, by int, share addrlimit.Share) bool {
	return t.change(name, share, func(r *references) { r.watching += by })
}

// wait counts a connection that waits for jobs of these tubes, which it watches.
func (t *tubes) wait(names []string, by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		if r := t.known[name]; r != nil {
			r.waiting += by
		}
	}
}

// of returns a tube's references and whether it is known here.
func (t *tubes) of(name string) (references, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.known[name]; r != nil {
		return *r, true
	}
	return references{}, false
}

// names lists the tubes known here in the order of becoming known.
func (t *tubes) names() []string {
	list := t.list()
	slices.SortFunc(list, func(a, b named) int { return cmp.Compare(a.number, b.number) })
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = n.name
	}
	return names
}

// named is a tube with its place in the order of becoming known.
type named struct {
	name   string
	number uint64
}

func (t *tubes) list() []named {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]named, 0, len(t.known))
	for name, r := range t.known {
		list = append(list, named{name, r.number})
	}
	return list
}
