package access

import (
	"context"
	"sync"

	"tarry/job"
)

// leader asks for the revision of the tokens that the leader has. One question is under way at
// a time, and all who come meanwhile share the next one: the one under way may have begun before
// what they look for was made.
type leader struct {
	source Source
	ask    func(context.Context) (revision uint64, err error)
	open   context.Context // ends with close
	close  context.CancelFunc

	turn chan struct{} // held by who asks
	mu   sync.Mutex
	next *question // collects callers; nil while none wait
}

type question struct {
	done     chan struct{}
	waiting  int
	revision uint64
	err      error
}

func newLeader(source Source, ask func(context.Context) (uint64, error)) *leader {
	open, end := context.WithCancel(context.Background())
	return &leader{source: source, ask: ask, open: open, close: end, turn: make(chan struct{}, 1)}
}

// revision returns the revision that the leader had at some instant after the call began.
func (l *leader) revision(ctx context.Context) (uint64, error) {
	l.mu.Lock()
	if l.next == nil {
		l.next = &question{done: make(chan struct{})}
	}
	mine := l.next
	mine.waiting++
	l.mu.Unlock()
	select {
	case l.turn <- struct{}{}:
		l.askNext(ctx)
		<-l.turn
	case <-mine.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	<-mine.done // it was the next one, or is over
	return mine.revision, mine.err
}

// askNext asks for all who wait. It does not end with the call that happens to ask for them.
func (l *leader) askNext(ctx context.Context) {
	l.mu.Lock()
	q := l.next
	l.next = nil
	l.mu.Unlock()
	if q == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	defer context.AfterFunc(l.open, cancel)()
	q.revision, q.err = l.ask(ctx)
	close(q.done)
}

// reached waits until this node has the tokens that the leader has now.
func (l *leader) reached(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	revision, err := l.revision(ctx)
	if err != nil {
		return job.NotApplied("only the leader can allow this: %w", err)
	}
	for {
		changed := l.source.AuthChanged() // before Auth, to miss no change
		if l.source.Auth().Revision >= revision {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return job.NotApplied("this node does not have all the tokens yet that the leader has")
		}
	}
}
