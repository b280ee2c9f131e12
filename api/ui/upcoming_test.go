package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

func TestUpcomingShowsWhatFallsDueAndHerds(t *testing.T) {
	r := newRig(t)
	require.Contains(t, mainText(t, r.open(upcomingPath)), "Nothing falls due in this time")
	at := time.Now().Add(10 * 24 * time.Hour).UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	for i := range herdJobs {
		r.add(fmt.Sprintf(`{"topic":"herd","id":"h%d","due_at":%q,"body":0}`, i, at.Format(time.RFC3339)))
	}
	for day := range 20 {
		r.add(fmt.Sprintf(`{"topic":"mail","due_at":%q,"body":0}`, at.Add(time.Duration(day+1)*24*time.Hour).Format(time.RFC3339)))
	}
	doc := r.open("/ui/upcoming?step=86400")
	require.Contains(t, mainText(t, doc), "100 herd")
	require.Len(t, all(doc, "rect"), 21)
	require.Len(t, all(r.open("/ui/upcoming?step=86400&topic=mail"), "rect"), 20)

	text := mainText(t, r.open(address(upcomingPath, "step", "86400", "at", at.Truncate(24*time.Hour).Format(dueFormat))))
	require.Contains(t, text, "100 jobs due from")
	require.Contains(t, text, "Show these jobs")
}

func TestBarsFitTheDrawing(t *testing.T) {
	v := &upcomingView{Step: time.Minute}
	v.draw(time.Unix(0, 0), []uint64{0, 1, 1_000_000}, time.Unix(0, 0))
	require.Zero(t, v.Steps[0].H)
	require.EqualValues(t, 1, v.Steps[1].H, "one job among a million is seen")
	require.EqualValues(t, 100, v.Steps[2].H)
	for _, s := range v.Steps {
		require.InDelta(t, 100, s.Y+s.H, 0.001)
		require.LessOrEqual(t, s.X+s.W, 100.0)
	}
	(&upcomingView{Step: time.Minute}).draw(time.Unix(0, 0), nil, time.Unix(0, 0))
}

func TestAHerdIsSpreadOrPostponed(t *testing.T) {
	at := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Hour)
	form := []string{"topic", "herd", "from", at.Format(time.RFC3339), "step", "3600", "back", address(upcomingPath, "step", "3600", "at", at.Format(dueFormat))}
	for path, c := range map[string]struct{ field, length, confirm, done string }{
		spreadHerd.Path:   {"spread", "90m", "Spread 50 jobs?", "jobs of herd spread over 1 h 30 min."},
		postponeHerd.Path: {"postpone", "20m", "Postpone 50 jobs?", "50 jobs of herd postponed by 20 min."},
	} {
		t.Run(c.field, func(t *testing.T) {
			r := newRig(t)
			for i := range 50 {
				r.add(fmt.Sprintf(`{"topic":"herd","id":"h%d","due_at":%q,"body":0}`, i, at.Format(time.RFC3339)))
			}
			require.Contains(t, mainText(t, r.open(form[7])), "herd (50)", "the page has the form")
			filled := append(form, c.field, c.length)
			w := r.post(path, filled...)
			text := mainText(t, parsed(t, w))
			require.Contains(t, text, c.confirm)
			require.Contains(t, text, "topic herd due now: from "+stamp(at)+" to "+stamp(at.Add(time.Hour))+" due then: from ")
			w = r.post(path, append(filled, confirmedField, "1")...)
			require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
			require.Contains(t, mainText(t, r.open(w.Header().Get("Location"))), c.done)

			for wrong, says := range map[string]string{
				"30": "30 has no unit; write 30m", "0": "has no unit", "-5": "has no unit", "NaN": "has no unit",
				"0s": "must be more than 0", "-5m": "is not a duration", "soon": "is not a duration", "": "is not a duration",
			} {
				w := r.post(path, append(form, c.field, wrong)...)
				require.Equal(t, http.StatusBadRequest, w.Code, wrong)
				require.Contains(t, mainText(t, parsed(t, w)), says, wrong)
			}
		})
	}
}

// fieldsOf returns what the forms of a page would send, but that of the search.
func fieldsOf(doc *html.Node) url.Values {
	fields := url.Values{}
	for _, input := range append(all(doc, "input"), all(doc, "button")...) {
		if name := attribute(input, "name"); name != "" && attribute(input, "type") != "search" {
			fields.Set(name, attribute(input, "value"))
		}
	}
	return fields
}

// A herd at the end of its hour is spread from its first job on, not from the full hour.
func TestASpreadBeginsWithTheFirstJob(t *testing.T) {
	r := newRig(t)
	hour := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Hour)
	at := hour.Add(50*time.Minute + 500*time.Millisecond)
	for i := range 20 {
		r.add(fmt.Sprintf(`{"topic":"herd","id":"h%02d","due_at":%q,"body":0}`, i, at.Format(dueFormat)))
	}
	w := r.post(spreadHerd.Path, "topic", "herd", "from", hour.Format(time.RFC3339), "step", "3600", "spread", "20m")
	doc := parsed(t, w)
	require.Contains(t, mainText(t, doc), "due now: from "+stamp(at.Truncate(time.Second))+" to "+stamp(hour.Add(time.Hour))+" due then: from "+stamp(at.Truncate(time.Second))+" to "+stamp(at.Truncate(time.Second).Add(20*time.Minute)))
	require.Equal(t, http.StatusSeeOther, r.send(formOf(spreadHerd.Path, fieldsOf(doc))).Code)
	text := mainText(t, r.open(address(Root+"topic", "topic", "herd", "state", "delayed", "due_from", at.Add(10*time.Minute).Format(dueFormat), "due_to", at.Add(20*time.Minute).Format(dueFormat))))
	require.Equal(t, 10, strings.Count(text, "0 of 16"), "the second half is due in the second half of the time: %s", text)
}

// A request does not work forever: a person sees how far it is, and goes on.
func TestALargeHerdIsChangedInSeveralRequests(t *testing.T) {
	r := newRig(t)
	at := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Hour)
	for i := range 6 {
		r.add(fmt.Sprintf(`{"topic":"herd","due_at":%q,"body":0}`, at.Add(time.Duration(i)*10*time.Minute).Format(time.RFC3339)))
	}
	form := []string{"topic", "herd", "from", at.Format(time.RFC3339), "step", "3600", "postpone", "10m", confirmedField, "1"}
	clock := r.dashboard.now
	asked := 0
	r.dashboard.now = func() time.Time { asked++; return clock().Add(time.Duration(asked) * 5 * time.Second) }
	w := r.post(postponeHerd.Path, form...)
	doc := parsed(t, w)
	require.Contains(t, mainText(t, doc), "postponed by 10 min so far. Go on?")
	for requests := 1; w.Code == http.StatusOK; requests++ {
		require.Less(t, requests, 10)
		w = r.send(formOf(postponeHerd.Path, fieldsOf(doc)))
		doc = parsed(t, w)
	}
	require.Contains(t, mainText(t, r.open(w.Header().Get("Location"))), "6 jobs of herd postponed by 10 min.")
}
