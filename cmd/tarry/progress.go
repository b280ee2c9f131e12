package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/go-json-experiment/json"
)

// progressFile is where a command on a file notes how far it is, so that it can be run
// again after it was interrupted.
func progressFile(file string) string { return file + ".progress" }

// saveProgress replaces the note in one step.
func saveProgress(path string, v any) error {
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

// loadProgress reads the note into v, and reports whether there is one.
func loadProgress(path string, v any) (found bool, err error) {
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

// meter shows how far a command is, on a line of its own that changes. Nobody but a
// person at a terminal sees it.
type meter struct {
	to    *harmlessWriter // nil: it shows nothing
	began time.Time
	last  time.Time
	start int // what was done before, by another run
	shown bool
}

// meterEvery is how often the line changes.
const meterEvery = 200 * time.Millisecond

func (t *terminal) meter(start int) *meter {
	m := &meter{began: t.now(), start: start}
	if w, ok := t.notes.to.(*harmlessWriter); ok && w.terminal {
		m.to = w
	}
	return m
}

// show writes the count; share is 0 to 1, or less than 0 when it is not known.
func (m *meter) show(now time.Time, jobs int, share float64) {
	if m.to == nil || now.Sub(m.last) < meterEvery {
		return
	}
	m.last, m.shown = now, true
	percent := ""
	if share >= 0 {
		percent = fmt.Sprintf(", %.0f%%", 100*min(share, 1))
	}
	rate := float64(jobs-m.start) / max(now.Sub(m.began).Seconds(), 0.001)
	_ = m.to.asIs(fmt.Appendf(nil, "\r\x1b[K%d jobs%s, %.0f a second", jobs, percent, rate))
}

// end removes the line.
func (m *meter) end() {
	if m.shown {
		_ = m.to.asIs([]byte("\r\x1b[K"))
	}
}
