package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheMeterIsForPeople(t *testing.T) {
	var screen bytes.Buffer
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	person := &Terminal{Notes: NotePrinter{Printer{&HarmlessWriter{To: &screen, Terminal: true}}}, Clock: Clock{Now: func() time.Time { return now }}}
	m := person.Meter(1000)
	m.Show(now.Add(2*time.Second), 3000, 0.5)
	m.Show(now.Add(2*time.Second+time.Millisecond), 3001, 0.5) // too soon
	require.Equal(t, "\r\x1b[K3000 jobs, 50%, 1000 a second", screen.String())
	m.End()
	screen.Reset()
	program := &Terminal{Notes: NotePrinter{Printer{&HarmlessWriter{To: &screen}}}, Clock: Clock{Now: time.Now}}
	m = program.Meter(0)
	m.Show(now, 1, 0.5)
	m.End()
	require.Empty(t, screen.String())
}
