package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpansAreRounded(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0:                                     "0 ms",
		999 * time.Millisecond:                "999 ms",
		1400 * time.Millisecond:               "1 s",
		59600 * time.Millisecond:              "1 min",
		90 * time.Second:                      "1 min 30 s",
		179600 * time.Millisecond:             "3 min",
		5*time.Minute + 40*time.Second:        "6 min",
		time.Hour:                             "1 h",
		9*time.Hour + 59*time.Minute:          "9 h 59 min",
		10*time.Hour - time.Second:            "10 h",
		10*time.Hour + 40*time.Minute:         "11 h",
		day - time.Minute:                     "1 d",
		9*day + 23*time.Hour + 50*time.Minute: "10 d",
		364*day + 20*time.Hour:                "1 y",
	} {
		require.Equal(t, want, span(d), d)
	}
}
