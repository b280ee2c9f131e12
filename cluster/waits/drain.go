package waits

import "sync"

// Drain is a state that begins and ends, and wakes those who wait for its beginning. Its
// methods may be called from many goroutines.
type Drain struct {
	mu    sync.Mutex
	on    bool
	began chan struct{} // closed while on
}

// NewDrain returns a Drain that has not begun.
func NewDrain() *Drain { return &Drain{began: make(chan struct{})} }

// Began returns a channel that is closed once the drain has begun, and stays closed.
func (d *Drain) Began() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.began
}

// On reports whether the drain has begun and not ended.
func (d *Drain) On() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.on
}

// Begin begins the drain, if it has not begun. It reports whether it had not.
func (d *Drain) Begin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.on {
		return false
	}
	d.on = true
	close(d.began)
	return true
}

// End ends the drain, if it has begun. It reports whether it had.
func (d *Drain) End() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.on {
		return false
	}
	d.on, d.began = false, make(chan struct{})
	return true
}
