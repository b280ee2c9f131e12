package beanstalk

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	name := strings.Repeat("n", 200)
	for line, want := range map[string]command{
		"put 1 2 3 4":                     {verb: put, pri: 1, seconds: 2, ttr: 3, n: 4},
		"put   1  2   3 4":                {verb: put, pri: 1, seconds: 2, ttr: 3, n: 4},
		"put 1 2 3 4 ":                    {verb: put, pri: 1, seconds: 2, ttr: 3, n: 4, trailing: true},
		"put 4294967295 0 0 0":            {verb: put, pri: 1<<32 - 1},
		"peek 18446744073709551615":       {verb: peekJob, id: 1<<64 - 1},
		"peek-ready":                      {verb: peekReady},
		"peek-delayed":                    {verb: peekDelayed},
		"peek-buried":                     {verb: peekBuried},
		"reserve":                         {verb: reserve},
		"reserve-with-timeout 5":          {verb: reserveTimeout, seconds: 5},
		"reserve-with-timeout 5 and more": {verb: reserveTimeout, seconds: 5},
		"reserve-job 5":                   {verb: reserveJob, id: 5},
		"delete 5":                        {verb: deleteJob, id: 5},
		"release 5 6 7":                   {verb: release, id: 5, pri: 6, seconds: 7},
		"bury 5 6":                        {verb: bury, id: 5, pri: 6},
		"kick 5":                          {verb: kick, n: 5},
		"kick \t-1x":                      {verb: kick, n: 1<<32 - 1},
		"kick 4294967297":                 {verb: kick, n: 1},
		"kick-job 5":                      {verb: kickJob, id: 5},
		"touch 5":                         {verb: touch, id: 5},
		"stats":                           {verb: stats},
		"stats-job 5":                     {verb: statsJob, id: 5},
		"stats-tube a":                    {verb: statsTube, tube: "a"},
		"use " + name:                     {verb: use, tube: name},
		"watch a":                         {verb: watch, tube: "a"},
		"ignore a-":                       {verb: ignore, tube: "a-"},
		"list-tubes":                      {verb: listTubes},
		"list-tube-used":                  {verb: listTubeUsed},
		"list-tubes-watched":              {verb: listTubesWatched},
		"quit":                            {verb: quit},
		"quit now":                        {verb: quit},
		"pause-tube a 5":                  {verb: pauseTube, tube: "a", seconds: 5},
		"pause-tube  " + name + "  0":     {verb: pauseTube, tube: name},
		"pause-tubea 5":                   {verb: pauseTube, tube: "a", seconds: 5},
		"":                                {verb: unknown},
		"put":                             {verb: unknown},
		"peek":                            {verb: unknown},
		"Reserve":                         {verb: unknown},
		" reserve":                        {verb: unknown},
		strings.Repeat("x", 222):          {verb: unknown},
	} {
		got, bad := parse([]byte(line))
		require.False(t, bad, line)
		require.Equal(t, want, got, line)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, line := range []string{
		"put ", "put 1 2 3", "put 1 2 3 x", "put -1 2 3 4", "put 1 2 3 4294967296", "put 4294967296 2 3 4", "put 1\t2 3 4",
		"peek x", "peek 1 ", "peek -1", "peek +1", "peek 18446744073709551616", "peek 99999999999999999999999999",
		"peek-ready ", "peek-readyx", "reservex", "reserve 1", "reserve-with-timeout", "reserve-with-timeout x",
		"reserve-with-timeout -1", "reserve-with-timeout 2147483648", "reserve-job", "reserve-job x",
		"delete 1 1", "release 1 1", "release 1 1 1 1", "bury 1", "kick x", "kick -", "kick 18446744073709551616",
		"touch 1x", "stats ", "stats-job", "stats-tube", "stats-tube ", "use ", "use  a", "use a ", "use a b", "use -a", "use a*", "use \xc3\xa4",
		"use " + strings.Repeat("n", 201), "watch ", "ignore *", "list-tubes ", "list-tubess", "list-tube-used x",
		"pause-tube", "pause-tube a", "pause-tube -a 1", "pause-tube a 1 ", "pause-tube a x", "pause-tube " + strings.Repeat("n", 201) + " 1",
		"use a\x00", "\x00",
	} {
		_, bad := parse([]byte(line))
		require.True(t, bad, "%q", line)
	}
}

// FuzzParse checks that the result of any line can be executed.
func FuzzParse(f *testing.F) {
	for _, w := range words {
		f.Add([]byte(w.text))
		f.Add([]byte(w.text + " 1 2 3 4"))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		c, bad := parse(line)
		if bad {
			return
		}
		switch c.verb {
		case use, watch, ignore, statsTube, pauseTube:
			if !validTube(c.tube) {
				t.Fatalf("%q gives the tube %q", line, c.tube)
			}
		default:
			if c.tube != "" {
				t.Fatalf("%q gives a tube", line)
			}
		}
	})
}
