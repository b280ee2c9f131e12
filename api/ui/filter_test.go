package ui

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJobsOfATopicAreFiltered(t *testing.T) {
	r := newRig(t)
	for i := range 6 {
		r.add(fmt.Sprintf(`{"topic":"mail","id":"a%d","due_at":"2031-01-0%dT00:00:00Z","headers":{"order":"%d"},"body":0}`, i, i+1, i%2))
	}
	r.add(`{"topic":"mail","id":"b1","due_at":"2031-01-01T00:00:00Z","body":0}`)
	at := func(pairs ...string) string {
		return address("/ui/topic", append(pairs, "topic", "mail", "state", "delayed")...)
	}
	rows := func(address string) int { return len(all(all(r.open(address), "tbody")[0], "tr")) }
	require.Equal(t, 7, rows(at()))
	require.Equal(t, 6, rows(at("id_prefix", "a")))
	require.Equal(t, 3, rows(at("header", "order=1")))
	require.Equal(t, 2, rows(at("due_from", "2031-01-02T00:00:00Z", "due_to", "2031-01-04T00:00:00Z")))
	require.Contains(t, mainText(t, r.open(at("id_prefix", "zzz"))), "No job matches here")
	require.Equal(t, http.StatusBadRequest, r.get(at("header", "order")).Code)
	require.Equal(t, http.StatusBadRequest, r.get(at("due_from", "tomorrow")).Code)
}

func TestAllThatMatchAreDeleted(t *testing.T) {
	r := newRig(t)
	for i := range 6 {
		r.add(fmt.Sprintf(`{"topic":"mail","id":"a%d","delay":60,"headers":{"order":"%d"},"body":0}`, i, i%2))
	}
	form := []string{"topic", "mail", "state", "delayed", "header", "order=1"}
	text := mainText(t, parsed(t, r.post("/ui/topic/purge", form...)))
	require.Contains(t, text, "Delete 3 delayed jobs that match?")
	require.Contains(t, text, "header order=1")
	r.post("/ui/topic/purge", append(form, confirmedField, "1")...)
	require.Contains(t, mainText(t, r.open(Root)), "3 jobs deleted.")
	require.Equal(t, http.StatusOK, r.get("/ui/job?id=a0").Code)
	require.Equal(t, http.StatusNotFound, r.get("/ui/job?id=a1").Code)
	// A filter that is wrong must not become none.
	require.Equal(t, http.StatusBadRequest, r.post("/ui/topic/purge", "topic", "mail", "state", "delayed", "header", "order", confirmedField, "1").Code)
	require.Equal(t, http.StatusOK, r.get("/ui/job?id=a0").Code)
}

func TestAllJobsOfAStateAreMoved(t *testing.T) {
	r := newRig(t)
	r.add(`{"topic":"mail","id":"a","delay":60,"body":0}`)
	r.add(`{"topic":"mail","id":"b","body":0}`)
	require.Contains(t, mainText(t, parsed(t, r.post("/ui/topic/move", "topic", "mail", "state", "delayed", "to", "sms"))), "to topic sms")
	r.post("/ui/topic/move", "topic", "mail", "state", "delayed", "to", "sms", confirmedField, "1")
	require.Contains(t, mainText(t, r.open("/ui/topic?topic=sms")), "a")
	require.Contains(t, mainText(t, r.open("/ui/topic?topic=mail&state=ready")), "b")
	require.Equal(t, http.StatusBadRequest, r.post("/ui/topic/move", "topic", "mail", "state", "ready").Code)
}

func TestAllThatMatchAreMoved(t *testing.T) {
	r := newRig(t)
	r.api(http.MethodPut, "/v1/topics/mail/settings", `{"push":{"url":"https://hooks.example.com/t","job_urls":true,"secret":"0123456789abcdef"}}`)
	for i := range 6 {
		r.add(fmt.Sprintf(`{"topic":"mail","id":"a%d","delay":60,"headers":{"order":"%d"},"body":0}`, i, i%2))
	}
	r.add(`{"topic":"mail","id":"own","delay":60,"headers":{"order":"1"},"push_url":"https://hooks.example.com/own","body":0}`)
	at := address("/ui/topic", "topic", "mail", "state", "delayed", "header", "order=1")
	require.Contains(t, mainText(t, r.open(at)), "Move all that match")
	form := []string{"topic", "mail", "state", "delayed", "header", "order=1", "to", "sms"}
	text := mainText(t, parsed(t, r.post("/ui/topic/move", form...)))
	require.Contains(t, text, "Move 4 delayed jobs that match?")
	require.Contains(t, text, "to topic sms")
	r.post("/ui/topic/move", append(form, confirmedField, "1", confirmedJobs, "4")...)
	require.Contains(t, mainText(t, r.open(Root)), "3 jobs moved. 1 other job stayed: push_url is not permitted")
	require.Contains(t, mainText(t, r.open("/ui/topic?topic=sms")), "delayed 3")
	require.Contains(t, mainText(t, r.open("/ui/topic?topic=mail")), "delayed 4")
}
