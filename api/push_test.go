package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// pushRig allows targets on hooks.example.com.
func pushRig(t *testing.T) *rig {
	return newRig(t, func(o *Options) {
		o.CheckPush = func(field, target string) error {
			if target != "" && !strings.HasPrefix(target, "https://hooks.example.com/") {
				return job.Invalid(field, "is not listed")
			}
			return nil
		}
	})
}

func TestTheSecretOfATargetIsNeverShown(t *testing.T) {
	r := pushRig(t)
	const secret = "0123456789abcdef"
	a := r.settings("PUT", "", `{"push":{"url":"https://hooks.example.com/a","secret":"`+secret+`"}}`)
	require.Equal(t, map[string]any{"push": map[string]any{"url": "https://hooks.example.com/a", "has_secret": true}}, a["settings"])
	a = r.settings("PATCH", "", `{"push":{"url":"https://hooks.example.com/b","timeout":2.5,"concurrency":3}}`)
	require.Equal(t, map[string]any{"push": map[string]any{"url": "https://hooks.example.com/b", "has_secret": true, "timeout": 2.5, "concurrency": 3.0}}, a["settings"])
	topic, err := r.queue.Topic(t.Context(), "mail", false)
	require.NoError(t, err)
	require.Equal(t, secret, topic.Settings.Push.Secret, "a change keeps it")
	for _, path := range []string{"/v1/topics/mail/settings", "/v1/topic-settings", "/v1/topics/mail", "/v1/topics"} {
		w := r.do(http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, w.Code)
		require.NotContains(t, w.Body.String(), secret)
	}
	r.settings("PATCH", "", `{"max_pending":5}`)
	require.Equal(t, map[string]any{"max_pending": 5.0}, r.settings("PATCH", "", `{"push":null}`)["settings"])
}

// Whoever may change a setting must not learn the secret of another's target by
// having the posts sent to a server of their own.
func TestTheSecretOfATargetStaysWithItsServer(t *testing.T) {
	r := newRig(t, func(o *Options) { o.CheckPush = func(string, string) error { return nil } })
	const secret = "0123456789abcdef"
	r.settings("PUT", "", `{"push":{"url":"https://hooks.example.com/a","secret":"`+secret+`"}}`)
	for _, url := range []string{
		"https://other.example.com/a", "http://hooks.example.com/a", "https://hooks.example.com:8443/a", "https://hooks.example.com.evil.example/",
	} {
		w := r.do("PATCH", "/v1/topics/mail/settings", `{"push":{"url":"`+url+`"}}`)
		refused(t, w, http.StatusBadRequest, job.CodeInvalid, "push.secret is missing: push.url leads to another server")
	}
	for _, url := range []string{"https://hooks.example.com/b", "https://HOOKS.example.com:443/c"} {
		r.settings("PATCH", "", `{"push":{"url":"`+url+`"}}`)
	}
	r.settings("PATCH", "", `{"push":{"url":"https://other.example.com/a","secret":"fedcba9876543210"}}`)
}

func TestTheQueryOfATargetIsNotShown(t *testing.T) {
	r := pushRig(t)
	const target, shown = "https://hooks.example.com/a?code=t0p&x=&bare", "https://hooks.example.com/a?code=***&x=***&***"
	pushed := func(a map[string]any) any { return a["settings"].(map[string]any)["push"].(map[string]any)["url"] }
	require.Equal(t, shown, pushed(r.settings("PUT", "", `{"push":{"url":"`+target+`","secret":"0123456789abcdef"}}`)))
	require.Equal(t, shown, pushed(r.settings("GET", "", "")))
	require.Equal(t, shown, pushed(r.settings("PATCH", "", `{"push":{"url":"`+shown+`","concurrency":3}}`)), "sent back as it was shown")
	topic, err := r.queue.Topic(t.Context(), "mail", false)
	require.NoError(t, err)
	require.Equal(t, target, topic.Settings.Push.Url, "it is kept")
	for _, method := range []string{"PUT", "PATCH"} {
		w := r.do(method, "/v1/topics/mail/settings", `{"push":{"url":"https://hooks.example.com/b?code=***","secret":"0123456789abcdef"}}`)
		refused(t, w, http.StatusBadRequest, job.CodeInvalid, "push.url has ***")
	}
}

func TestTargetsThatAreRefused(t *testing.T) {
	r := pushRig(t)
	const url = `"url":"https://hooks.example.com/a"`
	const secret = `"secret":"0123456789abcdef"`
	for body, says := range map[string]string{
		`{"push":{}}`:            "push.url is missing",
		`{"push":{` + url + `}}`: "push.secret has 0 bytes; it takes 16 to 256",
		`{"push":{"url":"https://other.example.com/",` + secret + `}}`: "not listed",
		`{"push":{` + url + `,"secret":"short"}}`:                      "push.secret has 5 bytes",
		`{"push":{` + url + `,` + secret + `,"timeout":0}}`:            "push.timeout is 0 s; it must be between 0.1 and 300 s",
		`{"push":{` + url + `,` + secret + `,"timeout":301}}`:          "push.timeout is 301 s; it must be between 0.1 and 300 s",
		`{"push":{` + url + `,` + secret + `,"concurrency":0}}`:        "push.concurrency is 0",
		`{"push":{` + url + `,` + secret + `,"concurrency":101}}`:      "push.concurrency is 101",
	} {
		refused(t, r.do("PUT", "/v1/topics/mail/settings", body), 400, job.CodeInvalid, says)
	}
	refused(t, r.do("PUT", "/v1/topics/mail/settings", `{"push":{`+url+`,`+secret+`,"has_secret":true}}`), 400, job.CodeInvalid, "has_secret is not a field")
	off := newRig(t)
	refused(t, off.do("PUT", "/v1/topics/mail/settings", `{"push":{`+url+`,`+secret+`}}`), 400, job.CodeInvalid, "push is off")
}

func TestTheNumberOfTargetsIsBounded(t *testing.T) {
	r := pushRig(t)
	target := &jobpb.TopicSettings{Push: &jobpb.PushTarget{Url: "https://hooks.example.com/a", Secret: "0123456789abcdef"}}
	var ops []*jobpb.Op
	for i := range job.MaxPushTargets {
		ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: fmt.Sprint(i), Settings: target}}})
	}
	results, err := r.queue.Do(t.Context(), ops)
	require.NoError(t, err)
	for _, res := range results {
		require.NoError(t, job.ResultError(res))
	}
	const body = `{"push":{"url":"https://hooks.example.com/b","secret":"0123456789abcdef"}}`
	for _, method := range []string{"PUT", "PATCH"} {
		refused(t, r.do(method, "/v1/topics/mail/settings", body), 409, job.CodeTooManyTopics, "1000 topics have a target for push already, which is the limit")
	}
	require.Equal(t, http.StatusOK, r.do("PATCH", "/v1/topics/7/settings", body).Code, "it has one")
	require.Equal(t, http.StatusOK, r.do("PATCH", "/v1/topics/7/settings", `{"push":null}`).Code)
	r.settings("PATCH", "", body)
}

func TestTheExamplesOfPush(t *testing.T) {
	require.GreaterOrEqual(t, runExamples(t, "../docs/push.md"), 2, "examples were found")
}
