package schedule

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/testseed"
	"tarry/job/jobpb"
)

var seedFlag = flag.Uint64("schedule.seed", 0, "seed of the random tests; 0: a new one each run")

// field is one field of a random expression: its text and its values.
type field struct {
	text string
	has  map[int]bool
	star bool
}

func randomField(rng *rand.Rand, low, high int) field {
	f := field{has: map[int]bool{}}
	switch rng.IntN(4) {
	case 0:
		f.text, f.star = "*", true
		for v := low; v <= high; v++ {
			f.has[v] = true
		}
	case 1:
		step := 1 + rng.IntN(high-low)
		f.text, f.star = fmt.Sprintf("*/%d", step), true
		for v := low; v <= high; v += step {
			f.has[v] = true
		}
	case 2:
		a := low + rng.IntN(high-low)
		b := a + rng.IntN(high-a+1)
		f.text = fmt.Sprintf("%d-%d", a, b)
		for v := a; v <= b; v++ {
			f.has[v] = true
		}
	default:
		var list []string
		for range 1 + rng.IntN(3) {
			v := low + rng.IntN(high-low+1)
			f.has[v] = true
			list = append(list, strconv.Itoa(v))
		}
		f.text = strings.Join(list, ",")
	}
	return f
}

// expression returns a random cron expression.
type expression struct {
	fields [6]field // second, minute, hour, day of month, month, day of week
}

func randomExpression(rng *rand.Rand) expression {
	e := expression{[6]field{
		randomField(rng, 0, 59), randomField(rng, 0, 59), randomField(rng, 0, 23),
		randomField(rng, 1, 31), randomField(rng, 1, 12), randomField(rng, 0, 6),
	}}
	all := func(i, low, high int) {
		e.fields[i] = field{"*", map[int]bool{}, true}
		for v := low; v <= high; v++ {
			e.fields[i].has[v] = true
		}
	}
	all(4, 1, 12) // the window is of days
	if rng.IntN(3) > 0 {
		all(3, 1, 31)
	}
	if rng.IntN(3) > 0 {
		all(5, 0, 6)
	}
	if rng.IntN(2) == 0 { // the hours in which clocks are set
		e.fields[2] = field{"1-3", map[int]bool{1: true, 2: true, 3: true}, false}
	}
	return e
}

func (e *expression) text() string {
	var list []string
	for _, f := range e.fields {
		list = append(list, f.text)
	}
	return strings.Join(list, " ")
}

// matches is a naive implementation of cron's rule.
func (e *expression) matches(c time.Time) bool {
	has := func(i, v int) bool { return e.fields[i].has[v] }
	day := has(3, c.Day()) && has(5, int(c.Weekday()))
	// A step, as in */2, restricts the days.
	if e.fields[3].text != "*" && e.fields[3].text != "*/1" && e.fields[5].text != "*" && e.fields[5].text != "*/1" {
		day = has(3, c.Day()) || has(5, int(c.Weekday()))
	}
	return has(0, c.Second()) && has(1, c.Minute()) && has(2, c.Hour()) && has(4, int(c.Month())) && day
}

// naive checks the clock at every second of a period.
func (e *expression) naive(loc *time.Location, from, to time.Time, most int) []int64 {
	var found []int64
	var furthest time.Time // the clock has shown every time up to here
	for i := from; i.Before(to) && len(found) < most; i = i.Add(time.Second) {
		c := onClock(i.In(loc))
		if e.fields[2].star {
			if e.matches(c) {
				found = append(found, i.UnixMilli())
			}
			continue
		}
		if furthest.IsZero() {
			furthest = c
			if e.matches(c) {
				found = append(found, i.UnixMilli())
			}
			continue
		}
		due := false
		for ; furthest.Before(c); furthest = furthest.Add(time.Second) {
			due = e.matches(furthest.Add(time.Second)) || due
		}
		if due {
			found = append(found, i.UnixMilli())
		}
	}
	return found
}

// Around the days on which clocks are set, in zones that do it in different ways, the
// instants are those of a check of every second.
func TestInstantsAreThoseOfANaiveClock(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = testseed.New()
	}
	t.Logf("-schedule.seed=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	names := []string{
		"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Sao_Paulo",
		"Asia/Kathmandu", "Pacific/Apia", "Africa/Cairo", "Antarctica/Troll", "America/Santiago", "UTC",
	}
	count := 100
	if testing.Short() {
		count = 20
	}
	for range count {
		e := randomExpression(rng)
		loc, err := zone(names[rng.IntN(len(names))])
		require.NoError(t, err)
		// A change of the offset, if there is one within a year.
		middle := time.Date(2000+rng.IntN(45), time.Month(1+rng.IntN(12)), 1+rng.IntN(28), rng.IntN(24), 0, 0, 0, loc)
		if _, end := middle.ZoneBounds(); !end.IsZero() && end.Before(middle.AddDate(1, 0, 0)) {
			middle = end
		}
		from, to := middle.Add(-26*time.Hour).UTC(), middle.Add(26*time.Hour).UTC()
		const most = 3000
		want := e.naive(loc, from, to, most)
		table, err := New(&jobpb.Schedule{Spec: e.text(), Zone: loc.String()}, 0)
		require.NoError(t, err, e.text())
		var got []int64
		for next := table.Next(from.UnixMilli() - 1); next != 0 && next < to.UnixMilli() && len(got) < most; next = table.Next(next) {
			got = append(got, next)
		}
		if !slices.Equal(want, got) {
			t.Fatalf("%s in %s from %s: %d instants, want %d; the first that differs: %s", e.text(), loc, from, len(got), len(want), firstDifference(want, got, loc))
		}
		if len(got) > 0 { // also when it is asked at any instant between
			i := rng.IntN(len(got))
			require.Equal(t, got[i], table.Next(got[i]-1-rng.Int64N(max(1, got[i]-max(from.UnixMilli(), before(got, i))))))
		}
	}
}

func before(list []int64, i int) int64 {
	if i == 0 {
		return 0
	}
	return list[i-1]
}

func firstDifference(want, got []int64, loc *time.Location) string {
	for i := range max(len(want), len(got)) {
		at := func(list []int64) string {
			if i >= len(list) {
				return "none"
			}
			return time.UnixMilli(list[i]).In(loc).Format(time.RFC3339)
		}
		if a, b := at(want), at(got); a != b {
			return fmt.Sprintf("want %s, got %s", a, b)
		}
	}
	return "none"
}
