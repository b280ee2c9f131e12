package push

import (
	"hash/maphash"
	"sync"
)

const (
	// maxKnown bounds the targets that are remembered, those of all topics together.
	maxKnown = 16 << 10
	// maxUnproven bounds the posts in flight to targets that are not proven, those of all
	// topics together. The other places of the node are for targets that answer.
	maxUnproven = MaxPosts / 2
)

// targets remembers which targets answered their last post, in topics whose jobs have URLs
// of their own. A target is a host and port, for one topic.
//
// A target that does not answer holds a place of its topic until the timeout of the post. So
// that many of them leave room for the others, a target that is not proven gets only a
// share of the places: one that was never heard of, or that was silent when it was last
// posted to. What goes to it beyond that share is put off.
type targets struct {
	seed maphash.Seed

	mu sync.Mutex
	// recent and older are the targets by their hash. When recent is full it becomes
	// older, and older is forgotten. To forget a target is harmless: it is new then.
	recent, older map[uint64]*target
	unproven      int // posts in flight to targets that are not proven
}

type target struct {
	proven bool // it answered its last post
	silent bool // it did not
	posts  int  // in flight while it was silent
}

func newTargets() *targets {
	return &targets{seed: maphash.MakeSeed(), recent: map[uint64]*target{}}
}

// find returns a target. It is called with k.mu held.
func (k *targets) find(topic, host string) *target {
	key := maphash.Comparable(k.seed, [2]string{topic, host})
	t := k.recent[key]
	if t != nil {
		return t
	}
	if t = k.older[key]; t == nil {
		t = &target{}
	}
	if len(k.recent) >= maxKnown/2 {
		k.older, k.recent = k.recent, map[uint64]*target{}
	}
	k.recent[key] = t
	return t
}

// share bounds what targets that are not proven use of one topic's places. A nil share
// bounds nothing.
type share struct {
	known  *targets
	topic  string
	places int

	// All below with known.mu held.
	window   int // posts in flight to targets that are not proven: half of the places to all
	unproven int // such posts
	silent   int // those of them to targets that were silent last time
}

func (k *targets) shareOf(topic string, places int) *share {
	return &share{known: k, topic: topic, places: places, window: places}
}

// permit is the right to one post. Its end must be called.
type permit struct {
	share            *share
	target           *target
	unproven, silent bool
}

// begin returns the permit of a post to the target; else why it must be put off.
func (s *share) begin(host string) (permit, string) {
	if s == nil {
		return permit{}, ""
	}
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	to := permit{share: s, target: s.known.find(s.topic, host)}
	if to.target.proven {
		return to, ""
	}
	to.unproven, to.silent = true, to.target.silent
	switch {
	case to.silent && to.target.posts > 0:
		return permit{}, host + " did not answer; until it does it gets one post at a time"
	case to.silent && s.silent >= max(1, s.places/4):
		return permit{}, host + " did not answer, and other targets of the topic do not answer either"
	case s.unproven >= s.window || s.known.unproven >= maxUnproven:
		return permit{}, "other targets do not answer"
	}
	s.known.unproven++
	s.unproven++
	if to.silent {
		to.target.posts++
		s.silent++
	}
	return to, ""
}

// end ends a permit with the outcome of the post; the zero value: there was none.
func (t permit) end(o outcome) {
	s := t.share
	if s == nil {
		return
	}
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	if t.unproven {
		s.known.unproven--
		s.unproven--
	}
	if t.silent {
		t.target.posts--
		s.silent--
	}
	if o.label == "" {
		return
	}
	t.target.proven, t.target.silent = o.answered, !o.answered
	switch {
	case !o.answered:
		s.window = max(s.window-1, s.places/2, 1)
	case t.unproven:
		s.window = min(s.window+1, s.places)
	}
}
