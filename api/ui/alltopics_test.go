package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bury adds a job and buries it with a reason.
func (r *rig) bury(topic, id, reason string) {
	r.t.Helper()
	r.add(fmt.Sprintf(`{"topic":%q,"id":%q,"body":0}`, topic, id))
	r.api(http.MethodPost, "/v1/jobs/"+id+"/bury", fmt.Sprintf(`{"token":%q,"reason":%q}`, r.reserve(topic, "w1"), reason))
}

// reserve reserves a job of a topic and returns the token.
func (r *rig) reserve(topic, consumer string) string {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/reserve", strings.NewReader(fmt.Sprintf(`{"topics":[%q],"consumer":%q}`, topic, consumer))))
	_, rest, ok := strings.Cut(w.Body.String(), `"token":"`)
	require.True(r.t, ok, w.Body.String())
	token, _, _ := strings.Cut(rest, `"`)
	return token
}

func TestDeadJobsAreGroupedByReasonOverAllTopics(t *testing.T) {
	r := newRig(t)
	require.Contains(t, mainText(t, r.open(deadPath)), "No job is dead")
	long := strings.Repeat("long ", 100)
	for i, reason := range []string{"timeout", "smtp: 550", "timeout", long, ""} {
		r.bury("mail", fmt.Sprint("m", i), reason)
	}
	r.bury("orders", "o1", "timeout")
	text := mainText(t, r.open(deadPath))
	require.Contains(t, text, "Dead 6 Reasons 4")
	require.Contains(t, text, "timeout 3 2 m0", "jobs, topics and an example")
	require.Contains(t, text, "no reason")
	require.Less(t, strings.Index(text, "timeout"), strings.Index(text, "smtp: 550"), "the largest group comes first")

	text = mainText(t, r.open("/ui/dead/topics?reason=timeout"))
	require.Contains(t, text, "Dead 3 Topics 2")
	require.Less(t, strings.Index(text, "mail"), strings.Index(text, "orders"))
	require.Contains(t, mainText(t, r.open("/ui/dead/topics")), "Dead 1 Topics 1")
	text = mainText(t, r.open("/ui/topic?topic=mail&state=dead&exact_reason=timeout"))
	require.Contains(t, text, "m0")
	require.NotContains(t, text, "m1")
}

func TestAGroupOfDeadJobsIsKickedOrDeleted(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("long ", 100)
	for i, reason := range []string{"timeout", "timeout", long, "", "timeout again"} {
		r.bury("mail", fmt.Sprint("m", i), reason)
	}
	r.bury("orders", "o1", "timeout")
	ask := func(path string, form ...string) string {
		t.Helper()
		return mainText(t, parsed(t, r.post(path, form...)))
	}
	all, mail := deadKey("", "timeout"), deadKey("mail", "timeout")
	require.Contains(t, ask("/ui/dead/kick", "group", all, "rate", "0.5"), "Kick 3 dead jobs?")
	require.Contains(t, ask("/ui/dead/kick", "group", all, "rate", "0.5"), "one after the other, 0.5 a second")
	require.Contains(t, ask("/ui/dead/purge", "group", all), "Delete 3 dead jobs? They are gone for good. reason: timeout in 2 topics")
	require.Contains(t, ask("/ui/dead/purge", "group", mail), "Delete 2 dead jobs?")
	require.Contains(t, ask("/ui/dead/purge", "group", deadKey("", "")), "no reason")

	r.post("/ui/dead/kick", "group", mail, "rate", "0.5", confirmedField, "1")
	require.Contains(t, mainText(t, r.open(deadPath)), "2 jobs kicked.")
	r.post("/ui/dead/kick", "group", all, confirmedField, "1")
	require.Contains(t, mainText(t, r.open(deadPath)), "1 job kicked.")
	r.post("/ui/dead/purge", "group", deadKey("mail", long[:200]), confirmedField, "1")
	require.Contains(t, mainText(t, r.open(deadPath)), "1 job deleted.")
	require.Equal(t, http.StatusNotFound, r.get("/ui/job?id=m2").Code)
	r.post("/ui/dead/purge", "group", deadKey("", ""), confirmedField, "1")
	require.Equal(t, http.StatusNotFound, r.get("/ui/job?id=m3").Code)
	require.Equal(t, http.StatusOK, r.get("/ui/job?id=m4").Code, "its reason only begins like the others")

	w := r.post("/ui/dead/kick", "group", all, "rate", "fast", "back", deadPath)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, mainText(t, parsed(t, w)), "rate must be a number")
	require.Equal(t, http.StatusBadRequest, r.post("/ui/dead/purge", "group", "%zz").Code)
}

func TestInFlightShowsWhoHasWhatAndGivesItBack(t *testing.T) {
	r := newRig(t)
	require.Contains(t, mainText(t, r.open(inFlightPath)), "No consumer has a job")
	for i := range reservedShown + 1 {
		r.add(fmt.Sprintf(`{"topic":"many","id":"x%d","body":0}`, i))
		r.reserve("many", "w7")
	}
	r.add(`{"topic":"orders","id":"o1","body":0}`)
	r.reserve("orders", "w8")
	page := r.open(inFlightPath)
	text := mainText(t, page)
	require.Contains(t, text, "w8")
	var offered []string
	for _, o := range all(page, "option") {
		offered = append(offered, attribute(o, "value"))
	}
	require.Equal(t, []string{"w7", "w8", "many", "orders"}, offered, "who can be chosen, and where")
	require.Contains(t, text, "26 reserved jobs")

	require.Contains(t, mainText(t, parsed(t, r.post("/ui/inflight/release", "topic", "many", "consumer", "w7"))), "Give back the jobs of w7")
	r.post("/ui/inflight/release", "topic", "many", "consumer", "w7", confirmedField, "1")
	text = mainText(t, r.open(inFlightPath))
	require.Contains(t, text, "26 jobs given back.")
	require.NotContains(t, text, "many")
	require.Contains(t, mainText(t, parsed(t, r.post("/ui/inflight/release", "topic", "many", "back", inFlightPath))), "consumer is missing")
}

func TestTopicsAreLookedAtInPages(t *testing.T) {
	r := newRig(t)
	for i := range maxTopicsListed + 5 {
		topic := fmt.Sprintf("t%02d", i)
		r.add(fmt.Sprintf(`{"topic":%q,"id":"j%d","body":0}`, topic, i))
		r.reserve(topic, topic)
	}
	doc := r.open(inFlightPath)
	require.Len(t, all(all(doc, "tbody")[0], "tr"), maxTopicsListed)
	doc = r.open(address(inFlightPath, "after", fmt.Sprintf("t%02d", maxTopicsListed-1)))
	require.Len(t, all(all(doc, "tbody")[0], "tr"), 5)
}
