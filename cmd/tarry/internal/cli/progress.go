package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/go-json-experiment/json"
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

// Meter shows how far a command is, on a line of its own that changes. Nobody but a
// person at a terminal sees it.
type Meter struct {
	to    *HarmlessWriter // nil: it shows nothing
	began time.Time
	last  time.Time
	start int // what was done before, by another run
	shown bool
}

// meterEvery is how often the line changes.
const meterEvery = 200 * time.Millisecond

func (t *Terminal) Meter(start int) *Meter {
	m := &Meter{began: t.Now(), start: start}
	if w, ok := t.Notes.To.(*HarmlessWriter); ok && w.Terminal {
		m.to = w
	}
	return m
}

// Show writes the count; share is 0 to 1, or less than 0 when it is not known.
func (m *Meter) Show(now time.Time, jobs int, share float64) {
	if m.to == nil || now.Sub(m.last) < meterEvery {
		return
	}
	m.last, m.shown = now, true
	percent := ""
	if share >= 0 {
		percent = fmt.Sprintf(", %.0f%%", 100*min(share, 1))
	}
	rate := float64(jobs-m.start) / max(now.Sub(m.began).Seconds(), 0.001)
	_ = m.to.AsIs(fmt.Appendf(nil, "\r\x1b[K%d jobs%s, %.0f a second", jobs, percent, rate))
}

// End removes the line.
func (m *Meter) End() {
	if m.shown {
		_ = m.to.AsIs([]byte("\r\x1b[K"))
	}
}
