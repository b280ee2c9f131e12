// Package alarm wakes a goroutine at an instant, within microseconds. Go's timers end up to
// a millisecond late in a process that is idle, because its poller waits for whole
// milliseconds, and later by the timer slack of its threads. On Linux an Alarm is a timer of
// the kernel (timerfd) that the poller sees as a file; elsewhere it is a timer of Go. Start
// at New.
package alarm

import "time"

// Alarm rings on C. Its methods are for one goroutine.
type Alarm struct {
	// C has a value when the alarm rang. It holds one, which may be of an earlier Reset.
	C    <-chan struct{}
	ring chan struct{}
	impl alarm
}

// alarm is a timer that rings, of the kernel or of Go.
type alarm interface {
	reset(d time.Duration) error
	stop() error
	close()
}

// New returns an alarm that does not ring before its Reset. The caller must Close it.
func New() *Alarm {
	a := NewTimer()
	if exact, err := newExact(a.rings); err == nil {
		a.impl = exact
	}
	return a
}

// NewTimer is New with a timer of Go, which follows the fake clock of a test.
func NewTimer() *Alarm {
	ring := make(chan struct{}, 1)
	a := &Alarm{C: ring, ring: ring}
	a.impl = newTimer(a.rings)
	return a
}

// Reset lets the alarm ring after d, and at no other time; at once if d is 0 or less.
func (a *Alarm) Reset(d time.Duration) {
	if err := a.impl.reset(max(d, 0)); err != nil { // the kernel refuses its own timer
		a.impl.close()
		a.impl = newTimer(a.rings)
		_ = a.impl.reset(d) // a timer of Go takes any duration
	}
}

// Close stops the alarm and waits for its goroutine, if it has one.
func (a *Alarm) Close() { a.impl.close() }

// Stop takes back the last Reset. If the alarm rang already, C may still have the value, or get it
// a moment later.
func (a *Alarm) Stop() {
	_ = a.impl.stop() // a timer that the kernel does not stop rings once, as it may anyway
}

func (a *Alarm) rings() {
	select {
	case a.ring <- struct{}{}:
	default:
	}
}

// timer is a timer of Go.
type timer struct{ t *time.Timer }

func newTimer(rings func()) timer {
	t := time.AfterFunc(time.Hour, rings)
	t.Stop()
	return timer{t}
}

func (t timer) reset(d time.Duration) error { t.t.Reset(d); return nil }
func (t timer) stop() error                 { t.t.Stop(); return nil }
func (t timer) close()                      { t.t.Stop() }
