//go:build linux

package disk

import (
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Forever is the count of a fault that does not end by itself.
const Forever = -1

// Faults are the faults from now on. The zero value is a disk that works.
type Faults struct {
	// Under limits the faults to files whose path below the mount contains it.
	Under string
	// SyncErrors is how many of the next syncs, of files or directories, fail with EIO. A
	// power loss drops the data of such a sync even if a later sync succeeds.
	SyncErrors int
	// WriteErrors is how many of the next writes fail with EIO and write nothing.
	WriteErrors int
	// TornWrites is how many of the next writes write only their first half and fail with
	// EIO.
	TornWrites int
	// ReadErrors is how many reads fail with EIO, MisdirectedReads how many get the data of
	// another page, after SparedReads that work. The kernel may have the pages in its cache: see
	// DropCache.
	ReadErrors, MisdirectedReads, SparedReads int
	// MisdirectedWrites is how many of the next writes go to another page of their file, and
	// seem to succeed.
	MisdirectedWrites int
	// SyncDelay is added to each sync.
	SyncDelay time.Duration
	// HangSyncs makes syncs wait until the faults change. A process with such a call cannot
	// end, as on a real disk that hangs.
	HangSyncs bool
}

// Counts has the numbers of calls and of failures since the disk was mounted.
type Counts struct {
	Syncs, Writes                                         int64
	SyncErrors, WriteErrors, TornWrites, Refused, Delayed int64
	ReadErrors, Misdirected                               int64
}

type counters struct {
	syncs, writes, syncErrors, writeErrors, tornWrites, refused, delayed, readErrors, misdirected atomic.Int64
}

// Counts reads the counters.
func (d *Disk) Counts() Counts {
	c := &d.counters
	return Counts{
		Syncs: c.syncs.Load(), Writes: c.writes.Load(), SyncErrors: c.syncErrors.Load(), WriteErrors: c.writeErrors.Load(),
		TornWrites: c.tornWrites.Load(), Refused: c.refused.Load(), Delayed: c.delayed.Load(),
		ReadErrors: c.readErrors.Load(), Misdirected: c.misdirected.Load(),
	}
}

// verdicts decide what happens to each call.
type verdicts struct {
	mu      sync.Mutex
	struck  string // see Struck
	faults  Faults
	changed chan struct{} // closed when faults are replaced; nil: no call waits
	// failed are the places where a write has failed under these faults. It fails there
	// again: the kernel splits a large write into several calls, and reports the failure of
	// a later one only if that fails again.
	failed map[failedWrite]struct{}
	bad    map[badPage]struct{} // see Latent
}

type failedWrite struct {
	path   string
	offset int64
}

// Inject replaces the faults. Calls that wait or hang continue under the new ones.
func (d *Disk) Inject(f Faults) {
	v := &d.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults, v.failed = f, nil
	if v.changed != nil {
		close(v.changed)
		v.changed = nil
	}
}

// Heal ends all faults. Damage and other effects of earlier faults stay.
func (d *Disk) Heal() {
	d.Inject(Faults{})
	d.SetFree(Unlimited)
	d.verdicts.mu.Lock()
	defer d.verdicts.mu.Unlock()
	d.verdicts.bad = nil
}

func (v *verdicts) now() (Faults, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.changed == nil {
		v.changed = make(chan struct{})
	}
	return v.faults, v.changed
}

// spend decrements a count of the faults and reports whether it was positive.
func (v *verdicts) spend(path string, count func(*Faults) *int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := count(&v.faults)
	if *n == 0 || !strings.Contains(path, v.faults.Under) {
		return false
	}
	if *n > 0 {
		*n--
	}
	v.struck = path
	return true
}

// direct returns where the data of a write goes.
func (d *Disk) direct(path string, offset int64) int64 {
	if d.verdicts.spend(path, func(f *Faults) *int { return &f.MisdirectedWrites }) {
		d.counters.misdirected.Add(1)
		return elsewhere(offset)
	}
	return offset
}

// Struck returns the file of the last call that failed because of a fault.
func (d *Disk) Struck() string {
	d.verdicts.mu.Lock()
	defer d.verdicts.mu.Unlock()
	return d.verdicts.struck
}

// beforeSync waits while the disk is slow or hangs, and returns the error of the sync; 0:
// none.
func (d *Disk) beforeSync(path string) syscall.Errno {
	d.counters.syncs.Add(1)
	for waited := false; ; waited = true {
		f, changed := d.verdicts.now()
		slow := (f.SyncDelay > 0 && !waited) || f.HangSyncs
		if !slow || !strings.Contains(path, f.Under) {
			break
		}
		if !waited {
			d.counters.delayed.Add(1)
		}
		if f.HangSyncs {
			<-changed
			continue
		}
		timer := time.NewTimer(f.SyncDelay)
		select {
		case <-timer.C:
		case <-changed:
			timer.Stop()
		}
	}
	if d.verdicts.spend(path, func(f *Faults) *int { return &f.SyncErrors }) {
		d.counters.syncErrors.Add(1)
		return syscall.EIO
	}
	return 0
}

// fail records that a write fails at a place.
func (v *verdicts) fail(w failedWrite) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failed == nil {
		v.failed = map[failedWrite]struct{}{}
	}
	v.failed[w] = struct{}{}
}

func (v *verdicts) hasFailed(w failedWrite) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, failed := v.failed[w]
	return failed
}

// beforeWrite returns how many of the bytes reach the file, and the error of the write
// after that; 0: none.
func (d *Disk) beforeWrite(path string, offset int64, size int) (reach int, failure syscall.Errno) {
	d.counters.writes.Add(1)
	at := failedWrite{path, offset}
	if d.verdicts.hasFailed(at) {
		return 0, syscall.EIO
	}
	defer func() {
		if failure != 0 {
			d.verdicts.fail(at)
		}
	}()
	if d.verdicts.spend(path, func(f *Faults) *int { return &f.WriteErrors }) {
		d.counters.writeErrors.Add(1)
		return 0, syscall.EIO
	}
	if d.verdicts.spend(path, func(f *Faults) *int { return &f.TornWrites }) {
		d.counters.tornWrites.Add(1)
		return size / 2, syscall.EIO
	}
	return size, 0
}
