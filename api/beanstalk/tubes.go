package beanstalk

import (
	"cmp"
	"slices"
	"sync"
)

// defaultTube is what every connection uses and watches at first.
const defaultTube = "default"

// tubes counts the connections of this node that name each tube. A tube is known here
// while there is one; the default tube always is.
type tubes struct {
	mu    sync.Mutex
	known map[string]*references
	named uint64 // how many have become known so far
}

// references counts the connections of this node that name one tube.
type references struct {
	using, watching, waiting int
	number                   uint64 // order of becoming known
}

func newTubes() *tubes {
	return &tubes{known: map[string]*references{defaultTube: {}}}
}

// change applies f to a tube's references and forgets the tube when none is left.
func (t *tubes) change(name string, f func(*references)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.known[name]
	if r == nil {
		t.named++
		r = &references{number: t.named}
		t.known[name] = r
	}
	f(r)
	if r.using == 0 && r.watching == 0 && name != defaultTube {
		delete(t.known, name)
	}
}

func (t *tubes) use(name string, by int)   { t.change(name, func(r *references) { r.using += by }) }
func (t *tubes) watch(name string, by int) { t.change(name, func(r *references) { r.watching += by }) }

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
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, 0, len(t.known))
	for name := range t.known {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(t.known[a].number, t.known[b].number) })
	return names
}
