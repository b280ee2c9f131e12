package network

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// packet is a packet that the kernel holds until its verdict.
type packet struct {
	id   uint32
	size int
}

// link is a line with packets in flight. It receives the packets that the kernel queues and
// sends each one's verdict when it arrives. One goroutine runs it, from openLink to stop.
type link struct {
	number uint16
	queue  *queue
	line   *line

	mu       sync.Mutex // orders stop's deadline after the one it replaces
	stopping bool

	done chan struct{}
	err  error // why it ended, read after done
}

func openLink(namespace string, number uint16, ln *line) (*link, error) {
	q, err := openQueue(namespace, number)
	if err != nil {
		return nil, err
	}
	l := &link{number: number, queue: q, line: ln, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.err = l.run()
	}()
	return l, nil
}

// stop makes all packets in flight arrive at once and waits for the goroutine.
func (l *link) stop() error {
	l.mu.Lock()
	l.stopping = true
	err := l.queue.deadline(time.Unix(1, 0))
	l.mu.Unlock()
	<-l.done
	if err := errors.Join(l.err, err); err != nil {
		return fmt.Errorf("a delayed line failed: %w", err)
	}
	return nil
}

// arm sets the deadline of the next receive; false: the link stops.
func (l *link) arm() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping {
		return false, nil
	}
	return true, l.queue.deadline(l.line.next())
}

func (l *link) run() error {
	err := l.carry()
	for { // the remaining packets arrive now
		id, ok := l.line.arrive(l.line.next())
		if !ok {
			break
		}
		err = errors.Join(err, l.queue.verdict(id, true))
	}
	return errors.Join(err, l.queue.close())
}

func (l *link) carry() error {
	for {
		more, err := l.arm()
		if err != nil || !more {
			return err
		}
		packets, err := l.queue.receive()
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		now := time.Now()
		for _, p := range packets {
			if !l.line.send(p.id, p.size, now) {
				if err := l.queue.verdict(p.id, false); err != nil {
					return err
				}
			}
		}
		for {
			id, ok := l.line.arrive(now)
			if !ok {
				break
			}
			if err := l.queue.verdict(id, true); err != nil {
				return err
			}
		}
	}
}
