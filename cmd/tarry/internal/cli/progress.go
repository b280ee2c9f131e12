package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/go-json-experiment/json"

	"tarry/cluster/recovery"
)

// ProgressFile is where a command on a file notes how far it is, so that it can be run
// again after it was interrupted.
func ProgressFile(file string) string { return file + ".progress" }

// SaveProgress replaces the note in one step.
func SaveProgress(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	next, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err = errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// LoadProgress reads the note into v, and reports whether there is one.
func LoadProgress(path string, v any) (found bool, err error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return false, fmt.Errorf("%s is damaged (%w); remove it to start anew", path, err)
	}
	return true, nil
}

// progressLine says how far a command is: on a line that changes for a person at a terminal, else, unless it
// is quiet, on a line every ten seconds.
type progressLine struct {
	notes NotePrinter
	quiet bool
	began time.Time
	last  time.Time
	shown bool
}

const (
	meterEvery = 200 * time.Millisecond // how often the line of a terminal changes
	lineEvery  = 10 * time.Second       // how often a log gets a line
)

// say writes a line if it is time for one.
func (l *progressLine) say(now time.Time, line func() string) {
	w, _ := l.notes.To.(*HarmlessWriter)
	person := w != nil && w.Terminal
	every := lineEvery
	if person {
		every = meterEvery
	}
	switch {
	case now.Sub(l.last) < every || l.quiet && !person:
	case person:
		l.last, l.shown = now, true
		_ = w.AsIs([]byte("\r\x1b[K" + line()))
	default:
		l.last = now
		l.notes.Line("%s", line())
	}
}

// End removes the line.
func (l *progressLine) End() {
	if w, ok := l.notes.To.(*HarmlessWriter); ok && l.shown {
		_ = w.AsIs([]byte("\r\x1b[K"))
	}
}

// Meter shows how many jobs are done. Nobody but a person at a terminal sees it.
type Meter struct {
	progressLine
	start int // what was done before, by another run
}

// Meter returns a meter that begins now.
func (t *Terminal) Meter(start int) *Meter {
	return &Meter{progressLine{notes: t.Notes, quiet: true, began: t.Now()}, start}
}

// Show writes the count; share is 0 to 1, or less than 0 when it is not known.
func (m *Meter) Show(now time.Time, jobs int, share float64) {
	m.say(now, func() string {
		percent := ""
		if share >= 0 {
			percent = fmt.Sprintf(", %.0f%%", 100*min(share, 1))
		}
		rate := float64(jobs-m.start) / max(now.Sub(m.began).Seconds(), 0.001)
		return fmt.Sprintf("%d jobs%s, %.0f a second", jobs, percent, rate)
	})
}

// ByteMeter shows how many bytes of a known number are done.
type ByteMeter struct {
	progressLine
	what  string
	total int64
}

// NewByteMeter returns a meter that begins now. what is what is done with the bytes.
func NewByteMeter(notes NotePrinter, what string, total int64) *ByteMeter {
	now := time.Now()
	return &ByteMeter{progressLine{notes: notes, began: now, last: now}, what, total}
}

// Progress returns what shows how far a backup is read, and then its records checked.
func (m *ByteMeter) Progress() recovery.Progress {
	return recovery.Progress{Read: m.Show, Checked: m.records("checked"), Hashed: m.records("hashed")}
}

// Show tells how many bytes are done.
func (m *ByteMeter) Show(done int64) {
	m.say(time.Now(), func() string {
		share := 100.0
		if m.total > 0 {
			share = 100 * float64(done) / float64(m.total)
		}
		rate := ByteSize(int64(float64(done) / max(time.Since(m.began).Seconds(), 0.001)))
		return fmt.Sprintf("%s: %s of %s, %.0f%%, %s/s", m.what, ByteSize(done), ByteSize(m.total), share, rate)
	})
}

// records returns what tells how many records something was done with.
func (m *ByteMeter) records(done string) func(uint64) {
	return func(n uint64) {
		m.say(time.Now(), func() string { return fmt.Sprintf("%s: %s records are %s", m.what, Count(n), done) })
	}
}
