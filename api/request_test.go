package api

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

func TestRequestsThatAreRefused(t *testing.T) {
	long := strings.Repeat("x", 201)
	for _, c := range []struct {
		path, body string
		code       job.Code
		says       string
	}{
		{"/v1/jobs", ``, job.CodeBadJSON, "empty"},
		{"/v1/jobs", " \n", job.CodeBadJSON, "empty"},
		{"/v1/jobs", `null`, job.CodeBadJSON, "object"},
		{"/v1/jobs", `[]`, job.CodeBadJSON, "object"},
		{"/v1/jobs", `topic=t`, job.CodeBadJSON, "object"},
		{"/v1/jobs", `{`, job.CodeBadJSON, "at byte 1"},
		{"/v1/jobs", `{"topic":"t","body":1`, job.CodeBadJSON, "at byte 21"},
		{"/v1/jobs", `{"topic":"t","body":1}{}`, job.CodeBadJSON, "after top-level value"},
		{"/v1/jobs", `{"topic":"t","body":tru}`, job.CodeBadJSON, "in body"},
		{"/v1/jobs", `{"topic":"t","body":"\ud800"}`, job.CodeBadJSON, "in body"},
		{"/v1/jobs", "{\"topic\":\"t\",\"body\":\"\xff\"}", job.CodeBadJSON, "in body"},
		{"/v1/jobs", `{"topic":"t","body":1,"Topic":"u"}`, job.CodeInvalid, "Topic is not a field"},
		{"/v1/jobs", `{"topic":"t","body":1,"delya":1}`, job.CodeInvalid, "delya is not a field"},
		{"/v1/jobs", `{"topic":"t","body":1,"body":1}`, job.CodeBadJSON, "body is given twice"},
		{"/v1/jobs", `{"topic":"t","body":{"a":[{"b":1,"b":2}]}}`, job.CodeBadJSON, "body.a[0].b is given twice"},
		{"/v1/jobs", `{"topic":"t","body":` + strings.Repeat("[", 100_000), job.CodeBadJSON, "is nested deeper than 10000 levels"},
		{"/v1/jobs/batch", `{"jobs":[{"topic":"t","body":` + strings.Repeat(`{"a":`, 100_000), job.CodeBadJSON, "is nested deeper than 10000 levels"},
		{"/v1/jobs", `{"topic":"t","body":` + strings.Repeat("[", 501) + strings.Repeat("]", 501) + `}`, job.CodeInvalid, "body has lists and objects nested 501 levels deep; the limit is 500"},
		{"/v1/jobs", `{"topic":"t","body":` + strings.Repeat(`{"a":[`, 300) + strings.Repeat("]}", 300) + `}`, job.CodeInvalid, "nested 600 levels deep"},
		{"/v1/jobs", `{"` + strings.Repeat("x", 100_000) + `":1}`, job.CodeInvalid, "is not a field"},
		{"/v1/jobs", `{"topic":7,"body":1}`, job.CodeInvalid, "topic must be a string, not a number"},
		{"/v1/jobs", `{"topic":"t","body":1,"delay":"1"}`, job.CodeInvalid, "delay must be a number, not a string"},
		{"/v1/jobs", `{"topic":"t","body":1,"delay":1e999}`, job.CodeInvalid, "delay is 1e999, which is out of range"},
		{"/v1/jobs", `{"topic":"t","body":1,"delay":1e300}`, job.CodeInvalid, "delay is out of range; it must be between 0 and 1000000000 s"},
		{"/v1/jobs", `{"topic":"t","body":1,"priority":1.5}`, job.CodeInvalid, "priority must be a whole number, not 1.5"},
		{"/v1/jobs", `{"topic":"t","body":1,"ttr":{}}`, job.CodeInvalid, "ttr must be a number, not an object"},
		{"/v1/jobs", `{"topic":"t","body":1,"id":true}`, job.CodeInvalid, "id must be a string, not true or false"},

		{"/v1/jobs", `{"body":1}`, job.CodeInvalid, "topic is missing"},
		{"/v1/jobs", `{"topic":null,"body":1}`, job.CodeInvalid, "topic is missing"},
		{"/v1/jobs", `{"topic":"` + long + `","body":1}`, job.CodeInvalid, "topic has 201 bytes"},
		{"/v1/jobs", `{"topic":"a\nb","body":1}`, job.CodeInvalid, "topic has the control character"},
		{"/v1/jobs", `{"topic":"a\u202eb","body":1}`, job.CodeInvalid, "topic has the character U+202E"},
		{"/v1/jobs", `{"topic":"t","body":1,"id":""}`, job.CodeInvalid, "id is missing or empty"},
		{"/v1/jobs", `{"topic":"t","body":1,"id":"$0-1"}`, job.CodeInvalid, "id"},
		{"/v1/jobs", `{"topic":"t","body":1,"headers":{"":"x"}}`, job.CodeInvalid, "a name in headers is missing or empty"},
		{"/v1/jobs", `{"topic":"t","body":1,"due_at":true}`, job.CodeInvalid, "due_at must be an RFC 3339 timestamp or a number of milliseconds since 1970, not true or false"},
		{"/v1/jobs", `{"topic":"t","body":1,"backoff":"5s"}`, job.CodeInvalid, "backoff must be a number of seconds, a list of them or an object, not a string"},
		{"/v1/jobs", `{"topic":"t"}`, job.CodeInvalid, "body is missing"},
		{"/v1/jobs", `{"topic":"t","body":"","body_base64":""}`, job.CodeInvalid, "both given"},
		{"/v1/jobs", `{"topic":"t","body_base64":"a"}`, job.CodeInvalid, "body_base64"},
		{"/v1/jobs", `{"topic":"t","body":1,"delay":-0.5}`, job.CodeInvalid, "delay is -0.5 s"},
		{"/v1/jobs", `{"topic":"t","body":1,"delay":1000000001}`, job.CodeInvalid, "between 0 and 1000000000"},
		{"/v1/jobs", `{"topic":"t","body":1,"delay":0,"due_at":"2030-01-01T00:00:00Z"}`, job.CodeInvalid, "delay and due_at"},
		{"/v1/jobs", `{"topic":"t","body":1,"due_at":"2030-01-01"}`, job.CodeInvalid, "due_at"},
		{"/v1/jobs", `{"topic":"t","body":1,"due_at":1.5}`, job.CodeInvalid, "due_at is 1.5; a number must be a whole one"},
		{"/v1/jobs", `{"topic":"t","body":1,"due_at":99999999999999}`, job.CodeInvalid, "must be at most 1000000000 s ahead"},
		{"/v1/jobs", `{"topic":"t","body":1,"due_at":1924992000}`, job.CodeInvalid, "due_at is 1924992000; a number is of milliseconds since 1970 and at least 100000000000, in 1973: is this one of seconds?"},
		{"/v1/jobs", `{"topic":"t","body":1,"due_at":-1}`, job.CodeInvalid, "due_at is -1"},
		{"/v1/jobs", `{"topic":"t","body":1,"due_at":[]}`, job.CodeInvalid, "due_at must be an RFC 3339 timestamp or"},
		{"/v1/jobs", `{"topic":"t","body":1,"id":"a","if_exists":"maybe"}`, job.CodeInvalid, "conflict, keep, replace, replace_ended and postpone"},
		{"/v1/jobs", `{"topic":"t","body":1,"if_exists":"keep"}`, job.CodeInvalid, "without an id"},
		{"/v1/jobs", `{"topic":"t","body":1,"backoff":-1}`, job.CodeInvalid, "backoff.delays is -1 s"},
		{"/v1/jobs", `{"topic":"t","body":1,"backoff":[]}`, job.CodeInvalid, "neither delays nor base"},
		{"/v1/jobs", `{"topic":"t","body":1,"backoff":{}}`, job.CodeInvalid, "neither delays nor base"},
		{"/v1/jobs", `{"topic":"t","body":1,"backoff":{"delays":[1],"base":1}}`, job.CodeInvalid, "both delays and base"},
		{"/v1/jobs", `{"topic":"t","body":1,"backoff":{"base":1,"factor":0.5}}`, job.CodeInvalid, "backoff.factor is 0.5"},
		{"/v1/jobs", `{"topic":"t","body":1,"backoff":{"base":10,"max":1}}`, job.CodeInvalid, "less than its base"},
		{"/v1/jobs", `{"topic":"t","body":1,"backoff":{"base":10,"jitter":2}}`, job.CodeInvalid, "backoff.jitter is 2"},
		{"/v1/jobs", `{"topic":"t","body":1,"backoff":{"bas":10}}`, job.CodeInvalid, "backoff.bas is not a field"},
		{"/v1/jobs", `{"topic":"t","body":1,"headers":{"a":1}}`, job.CodeInvalid, "headers.a must be a string"},
		{"/v1/jobs", `{"topic":"t","body":1,"headers":{"a":"` + strings.Repeat("x", 8192) + `"}}`, job.CodeInvalid, "more than 8192 bytes"},
		{"/v1/jobs", `{"topic":"t","body":1,"id":"a","if_revision":1}`, job.CodeInvalid, "need if_exists"},
		{"/v1/jobs", `{"topic":"t","body":1,"due_at":"2030-01-01T00:00:00"}`, job.CodeInvalid, "zone"},
		{"/v1/jobs", `{"topic":"t","body":1,"due_at":"9999-01-01T00:00:00Z"}`, job.CodeInvalid, "must be at most 1000000000 s ahead"},
		{"/v1/jobs", `{"topic":"t","body":1,"ttr":0}`, job.CodeInvalid, "ttr"},
		{"/v1/jobs", `{"topic":"t","body":1,"ttr":315360001}`, job.CodeInvalid, "ttr"},
		{"/v1/jobs", `{"topic":"t","body":1,"priority":-1}`, job.CodeInvalid, "priority is -1"},
		{"/v1/jobs", `{"topic":"t","body":1,"priority":4294967296}`, job.CodeInvalid, "4294967295"},
		{"/v1/jobs", `{"topic":"t","body":1,"max_attempts":-1}`, job.CodeInvalid, "max_attempts"},

		{"/v1/jobs/batch", `{"atomic":true,"jobs":[{"topic":"t","body":1},{"topic":"t"}]}`, job.CodeInvalid, "jobs[1]: body is missing"},
		{"/v1/jobs/batch", `{"atomic":true,"jobs":[{"topic":"t","id":"a","body":1,"if_exists":"replace"}]}`, job.CodeInvalid, "jobs[0]: if_exists must be conflict or keep"},
		{"/v1/jobs/a/finish", `{"then":[]}`, job.CodeInvalid, "then has 0 items"},
		{"/v1/jobs/a/finish", `{"then":[{"topic":"t"}]}`, job.CodeInvalid, "then[0]: body is missing"},
		{"/v1/jobs/a/finish", `{"then":[{"topic":"t","body":1,"if_exists":"replace","id":"x"}]}`, job.CodeInvalid, "then[0]: if_exists"},
		{"/v1/jobs/batch", `{}`, job.CodeInvalid, "jobs has 0 items"},
		{"/v1/jobs/batch", `{"jobs":[]}`, job.CodeInvalid, "1 to 1000"},
		{"/v1/jobs/batch", `{"jobs":[` + strings.Repeat(`{},`, 1000) + `{}]}`, job.CodeInvalid, "jobs has more than 1000 items"},
		{"/v1/jobs/batch", `{"jobs":{}}`, job.CodeInvalid, "jobs must be a list, not an object"},
		{"/v1/jobs/batch", `{"jobs":[{"topic":"t","body":1},{"topic":"t","body":1,"delay":"x"}]}`, job.CodeInvalid, "jobs[1].delay must be a number"},
		{"/v1/jobs/batch", `{"jobs":[7]}`, job.CodeInvalid, "jobs[0] must be an object"},

		{"/v1/reserve", `{}`, job.CodeInvalid, "topics has 0 names"},
		{"/v1/reserve", `{"topics":["a",""]}`, job.CodeInvalid, "topics[1]"},
		{"/v1/reserve", `{"topics":"a"}`, job.CodeInvalid, "topics must be a list"},
		{"/v1/reserve", `{"topics":["a",1]}`, job.CodeInvalid, "topics[1] must be a string"},
		{"/v1/reserve", `{"topics":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`, job.CodeInvalid, "topics has more than 1000 items"},
		{"/v1/reserve", `{"topics":["a"],"max":0}`, job.CodeInvalid, "max is 0"},
		{"/v1/reserve", `{"topics":["a"],"max":1001}`, job.CodeInvalid, "between 1 and 1000"},
		{"/v1/reserve", `{"topics":["a"],"wait":300.5}`, job.CodeInvalid, "wait"},
		{"/v1/reserve", `{"topics":["a"],"wait":-1}`, job.CodeInvalid, "wait"},
		{"/v1/reserve", `{"topics":["a"],"ttr":0}`, job.CodeInvalid, "ttr"},
		{"/v1/reserve", `{"topics":["a"],"consumer":"` + strings.Repeat("c", 65) + `"}`, job.CodeInvalid, "consumer has 65 bytes; the limit is 64"},
		{"/v1/reserve", `{"topics":["a"],"consumer":"a\nb"}`, job.CodeInvalid, "consumer has the control character"},

		{"/v1/jobs/a/finish", `{"token":"0-1"}`, job.CodeInvalid, "token"},
		{"/v1/jobs/a/finish", `{"delay":1}`, job.CodeInvalid, "delay is not a field of finish; it takes: token"},
		{"/v1/jobs/a/kick", `{"token":"0-1-1"}`, job.CodeInvalid, "it takes: to_topic"},
		{"/v1/jobs/a/kick", `{"to_topic":""}`, job.CodeInvalid, "to_topic is missing or empty"},
		{"/v1/jobs/a/move", `{}`, job.CodeInvalid, "to is missing"},
		{"/v1/jobs/a/move", `{"to":"b","delay":1}`, job.CodeInvalid, "it takes: token, to"},
		{"/v1/jobs/a/finish", `{"id":"b"}`, job.CodeInvalid, "differs"},
		{"/v1/jobs/a/finish", `[]`, job.CodeBadJSON, "object"},
		{"/v1/jobs/a/release", `{"delay":-1}`, job.CodeInvalid, "delay"},
		{"/v1/jobs/a/release", `{"priority":-1}`, job.CodeInvalid, "priority"},
		{"/v1/jobs/a/release", `{"reason":"` + strings.Repeat("r", 1001) + `"}`, job.CodeInvalid, "reason has 1001 bytes"},
		{"/v1/jobs/a/touch", `{"ttr":0}`, job.CodeInvalid, "ttr"},
		{"/v1/jobs/a/bury", `{"priority":-1}`, job.CodeInvalid, "priority"},
		{"/v1/jobs/a/bury", `{"reason":"` + strings.Repeat("r", 1001) + `"}`, job.CodeInvalid, "reason"},
		{"/v1/topics/t/kick", `{}`, job.CodeInvalid, "max is missing"},
		{"/v1/topics/t/kick", `{"max":10001}`, job.CodeInvalid, "between 1 and 10000"},
		{"/v1/topics/t/kick", `{"max":1,"all":true}`, job.CodeInvalid, "max and all"},
		{"/v1/topics/t/kick", `{"all":false}`, job.CodeInvalid, "max is missing"},
		{"/v1/topics/t/kick", `{"all":1}`, job.CodeInvalid, "all must be true or false"},
		{"/v1/topics/t/kick", `{"all":true,"rate":0}`, job.CodeInvalid, "rate is 0 jobs a second"},
		{"/v1/topics/t/kick", `{"all":true,"rate":1000001}`, job.CodeInvalid, "between 0.001 and 1000000"},
		{"/v1/topics/t/kick", `{"all":true,"rate":0.3333}`, job.CodeInvalid, "at most three decimals"},
		{"/v1/topics/t/kick", `{"all":true,"to_topic":""}`, job.CodeInvalid, "to_topic"},
		{"/v1/topics/t/kick", `{"all":true,"filter":{"reson":"x"}}`, job.CodeInvalid, "filter.reson is not a field"},
		{"/v1/topics/t/kick", `{"all":true,"filter":{"died_from":"x"}}`, job.CodeInvalid, "died_from"},
		{"/v1/topics/t/kick", `{"all":true,"filter":{"died_from":100000000005,"died_to":100000000005}}`, job.CodeInvalid, "died_to is not after died_from"},
		{"/v1/topics/t/kick", `{"all":true,"filter":{"id_prefix":"$0"}}`, job.CodeInvalid, "id_prefix"},
		{"/v1/topics/t/kick", `{"all":true,"filter":{"reason":"` + strings.Repeat("r", 1001) + `"}}`, job.CodeInvalid, "reason has 1001 bytes"},
		{"/v1/topics/t/kick", `{"all":true,"filter":{"headers":{"":"x"}}}`, job.CodeInvalid, "headers"},
		{"/v1/topics/t/purge", `{"all":true}`, job.CodeInvalid, "state"},
		{"/v1/topics/t/purge", `{"all":true,"state":"reserved"}`, job.CodeInvalid, "dead, delayed or ready"},
		{"/v1/topics/t/purge", `{"state":"dead"}`, job.CodeInvalid, "max is missing"},
		{"/v1/topics/t/purge", `{"state":"dead","max":0}`, job.CodeInvalid, "max is 0"},
		{"/v1/topics/t/purge", `{"state":"dead","all":true,"rate":1}`, job.CodeInvalid, "rate is not a field"},
		{"/v1/topics/t/move", `{}`, job.CodeInvalid, "to is missing"},
		{"/v1/topics/t/move", `{"to":"t"}`, job.CodeInvalid, "the topic itself"},
		{"/v1/topics/t/move", `{"to":"u","states":[]}`, job.CodeInvalid, "states is empty"},
		{"/v1/topics/t/move", `{"to":"u","states":["gone"]}`, job.CodeInvalid, "\"gone\""},
		{"/v1/topics/t/move", `{"to":"u","filter":{"reason":"x"}}`, job.CodeInvalid, "max is missing"},
		{"/v1/topics/t/move", `{"to":"u","max":10001}`, job.CodeInvalid, "max is 10001"},
		{"/v1/topics/t/move", `{"to":"u","max":1,"all":true}`, job.CodeInvalid, "give one"},
		{"/v1/topics/t/move", `{"to":"t","all":true,"filter":{"reason":"x"}}`, job.CodeInvalid, "the topic itself"},
		{"/v1/topics/t/move", `{"to":"u","all":true,"cursor":"x"}`, job.CodeInvalid, "cursor is not one"},
		{"/v1/topics/t/move", `{"to":"u","all":true,"filter":{"died_from":100000000005,"died_to":100000000005}}`, job.CodeInvalid, "filter.died_to is not after"},
		{"/v1/topics/a%0Ab/kick", `{"max":1}`, job.CodeInvalid, "topic"},
		{"/v1/cluster/transfer-leadership", `{"id":""}`, job.CodeInvalid, "id"},

		{"/", `{}`, job.CodeInvalid, "command is missing"},
		{"/", `{"command":"fly"}`, job.CodeInvalid, `"fly"`},
		{"/", `{"command":"add","topic":"t"}`, job.CodeInvalid, "body is missing"},
		{"/", `{"command":"add","topic":"t","body":1,"body2":1}`, job.CodeInvalid, "body2 is not a field"},
		{"/", `{"command":"add","COMMAND":"pop"}`, job.CodeBadJSON, "COMMAND is given twice"},
		{"/", `{"command":"add","topic":"t","body":1,"delay":"soon"}`, job.CodeInvalid, "delay must be a number, not a string"},
		{"/", `{"command":"add","topic":"t","body":1,"delay":""}`, job.CodeInvalid, "delay must be a number, not a string"},
		{"/", `{"command":"add","topic":"t","body":1,"priority":"1.5"}`, job.CodeInvalid, "priority must be a whole number, not a string"},
		{"/", `{"command":"add","topic":"t","body":1,"id":1.5}`, job.CodeInvalid, "id must be a string, not 1.5"},
		{"/", `{"command":"pop"}`, job.CodeInvalid, "topic"},
		{"/", `{"command":"pop","topic":"t","count":0}`, job.CodeInvalid, "count"},
		{"/", `{"command":"pop","topic":"t","timeout":301}`, job.CodeInvalid, "timeout"},
		{"/", `{"command":"finish"}`, job.CodeInvalid, "id"},
		{"/", `{"command":"finish","id":"a","token":"x"}`, job.CodeInvalid, "token"},
	} {
		t.Run(c.path+" "+fmt.Sprintf("%.80s", c.body), func(t *testing.T) {
			r := newRig(t)
			w := r.post(c.path, c.body)
			refused(t, w, 400, c.code, c.says)
			require.Empty(t, r.queue.Ops(), "nothing is written")
			if c.path == "/" {
				a := decoded(t, w)
				asked := regexp.MustCompile(`"id":"(\w*)"`).FindStringSubmatch(c.body + `"id":""`)[1]
				require.Equal(t, []any{asked, nil}, []any{a["id"], a["value"]}, "the protocol's members are there")
			}
		})
	}
}

// Clients of the commands send numbers as text, and ids as numbers; in /v1 both are
// refused (above).
func TestCommandsTakeNumbersAsText(t *testing.T) {
	r := newRig(t)
	require.Equal(t, "42", r.ok("/", `{"command":"add","topic":"t","id":42,"delay":"0","ttr":"30.5","priority":"7","max_attempts":3,"body":"x"}`)["id"])
	add := r.queue.Ops()[0].GetAdd()
	require.Equal(t, []any{"42", int64(30_500), uint32(7), uint32(3)}, []any{add.Id, add.TtrMs, add.Priority, add.MaxAttempts})
	require.Equal(t, "42", r.ok("/", `{"command":"pop","topic":"t","timeout":"0","count":"1"}`)["id"])
	require.Equal(t, "42", r.ok("/", `{"command":"finish","id":42}`)["id"])
	a := decoded(t, r.post("/", `{"command":"finish","id":42}`))
	require.Equal(t, []any{"not_found", "42"}, []any{a["code"], a["id"]}, "a failure carries the id that was asked for")
	refused(t, r.post("/v1/jobs", `{"topic":"t","id":42,"body":1}`), 400, job.CodeInvalid, "id must be a string, not a number")
}

// A call that takes no request body refuses one that says something.
func TestBodiesThatNoCallTakes(t *testing.T) {
	routes := (&server{}).routes()
	for _, rt := range routes {
		for method, e := range rt.methods {
			if e.body {
				continue
			}
			path := strings.NewReplacer("{id:batch}", "batch", "{id:kick}", "kick", "{id}", "a", "{topic}", "t", "{name}", "s").Replace(rt.path)
			t.Run(method+" "+path, func(t *testing.T) {
				r := newRig(t, func(o *Options) { o.Access = anybodyMayDoEverything() })
				refused(t, r.do(method, path, `{"if_revision":99}`), 400, job.CodeInvalid, "if_revision is not a field of this call, which takes no request body")
				refused(t, r.do(method, path, `x=1`), 400, job.CodeInvalid, "the request has a body, but this call takes none")
				require.Empty(t, r.queue.Ops())
				require.Empty(t, r.operator.Calls())
			})
		}
	}
	r := newRig(t)
	refused(t, r.do("DELETE", "/v1/jobs/a", `{"if_revision":99}`), 400, job.CodeInvalid, "its query parameters: token, if_revision, if_state")
	r.ok("/v1/cluster/leave", `{}`) // it says nothing
	require.Equal(t, []string{"leave"}, r.operator.Calls())
}

func TestAddFillsInWhatIsLeftOut(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"t","body":""}`)
	r.ok("/v1/jobs", `{"topic":"t","id":null,"delay":0.0015,"ttr":0.25,"priority":0,"max_attempts":0,"body":null}`)
	ops := r.queue.Ops()
	for i, want := range []*jobpb.Add{
		{Topic: "t", Body: []byte{}, Priority: 1024, TtrMs: 60_000, MaxAttempts: 16, TopicTtr: true, TopicAttempts: true},
		{Topic: "t", Body: []byte("null"), BodyKind: jobpb.BodyKind_BODY_JSON, DelayMs: 2, TtrMs: 250},
	} {
		require.True(t, proto.Equal(want, ops[i].GetAdd()), "%v", ops[i])
	}
}

func TestDueInstants(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, ms := range map[string]int64{
		"2030-01-01T00:00:00Z":           now.UnixMilli(),
		"2030-01-01T01:00:00+01:00":      now.UnixMilli(),
		"2030-01-01T00:00:00.250Z":       now.UnixMilli() + 250,
		"2030-01-01T00:00:00.250000001Z": now.UnixMilli() + 251, // never early
		"2029-01-01T00:00:00Z":           now.AddDate(-1, 0, 0).UnixMilli(),
		"1960-01-01T00:00:00Z":           1, // the past; 0 would mean none
		"1970-01-01T00:00:00Z":           1,
	} {
		got, err := wire.Timestamp{Text: text}.Millis("due_at", now)
		require.NoError(t, err, text)
		require.Equal(t, ms, got, text)
	}
	limit := now.Add(job.MaxDelay)
	_, err := wire.Timestamp{Text: limit.Format(time.RFC3339)}.Millis("due_at", now)
	require.NoError(t, err)
	_, err = wire.Timestamp{Text: limit.Add(time.Second).Format(time.RFC3339)}.Millis("due_at", now)
	require.Error(t, err)
	ms, err := wire.Timestamp{Number: true, Text: strconv.FormatInt(limit.UnixMilli(), 10)}.Millis("due_at", now)
	require.NoError(t, err)
	require.Equal(t, limit.UnixMilli(), ms)
}

func TestBodiesComeBackAsTheyCame(t *testing.T) {
	for _, body := range []string{
		`"body":""`, `"body":"text"`, `"body":"\"ü€\n\\"`, `"body":null`, `"body":true`, `"body":0`, `"body":-1.50e+300`,
		`"body":12345678901234567890123`, `"body":[ 1,2 ]`, `"body":{ "b" : 1, "a":"\u00fc<" }`, `"body_base64":"/wD+"`,
	} {
		t.Run(body, func(t *testing.T) {
			r := newRig(t)
			r.ok("/v1/jobs", `{"topic":"t","id":"a", `+strings.Replace(body, ":", " : \n", 1)+"\n}")
			require.Contains(t, r.do("GET", "/v1/jobs/a", "").Body.String(), ","+body+"}\n")
			require.Contains(t, r.post("/v1/reserve", `{"topics":["t"]}`).Body.String(), ","+body+"}]}\n")
		})
	}
}

func TestAStringIsStoredAsTheBytesItDenotes(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"t","body":"\u00fc\n\ud83d\ude00"}`)
	r.ok("/v1/jobs", `{"topic":"t","body":{"a":"\u00fc"}}`)
	r.ok("/v1/jobs", `{"topic":"t","body_base64":"w7w="}`)
	ops := r.queue.Ops()
	require.Equal(t, []any{"ü\n😀", jobpb.BodyKind_BODY_BYTES}, []any{string(ops[0].GetAdd().Body), ops[0].GetAdd().BodyKind})
	require.Equal(t, []any{`{"a":"\u00fc"}`, jobpb.BodyKind_BODY_JSON}, []any{string(ops[1].GetAdd().Body), ops[1].GetAdd().BodyKind})
	require.Equal(t, []any{"ü", jobpb.BodyKind_BODY_BYTES}, []any{string(ops[2].GetAdd().Body), ops[2].GetAdd().BodyKind})
	require.Contains(t, r.post("/v1/reserve", `{"topics":["t"],"max":3}`).Body.String(), `"body":"ü"`, "base64 that is text comes back as text")
}

func TestBodyLimit(t *testing.T) {
	const limit = 1000
	text := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct {
		body string
		ok   bool
	}{
		"string at the limit":      {`"body":"` + text(limit) + `"`, true},
		"string over it":           {`"body":"` + text(limit+1) + `"`, false},
		"escapes count once":       {`"body":"` + strings.Repeat(`\u0001`, limit) + `"`, true},
		"escapes over it":          {`"body":"` + strings.Repeat(`\u0001`, limit+1) + `"`, false},
		"JSON counts as it is":     {`"body":["` + text(limit-4) + `"]`, true},
		"JSON over it":             {`"body":["` + text(limit-3) + `"]`, false},
		"base64 counts as decoded": {`"body_base64":"` + strings.Repeat("AAAA", limit/3) + `AA=="`, true},
		"base64 over it":           {`"body_base64":"` + strings.Repeat("AAAA", limit/3+1) + `"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.MaxBodyBytes = limit })
			w := r.post("/v1/jobs", `{"topic":"t",`+c.body+`}`)
			if c.ok {
				require.Equal(t, 201, w.Code, w.Body.String())
				return
			}
			refused(t, w, 413, job.CodeTooLarge, "limit is 1000")
			require.Empty(t, r.queue.Ops())
		})
	}
}

func TestRequestsOverTheirLimit(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxBodyBytes = 1000 })
	big := `{"topic":"t","body":"` + strings.Repeat("a", 600<<10) + `"}`
	refused(t, r.post("/v1/jobs", big), 413, job.CodeTooLarge, "the request has more than")
	refused(t, r.post("/v1/reserve", big), 413, job.CodeTooLarge, "the request has more than")
	// Without a length the limit is met while reading.
	for _, path := range []string{"/v1/jobs", "/v1/jobs/a/release"} {
		q := httptest.NewRequest("POST", path, io.MultiReader(strings.NewReader(big)))
		q.ContentLength = -1
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		refused(t, w, 413, job.CodeTooLarge, "the request has more than")
	}
	q := httptest.NewRequest("POST", "/v1/jobs", strings.NewReader("x"))
	q.Header.Set("Content-Encoding", "gzip")
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	refused(t, w, 415, codeEncoding, "gzip")
}

func TestTheNodeHoldsABoundedAmountOfRequests(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxBufferedBytes = 10_000 })
	small := `{"topic":"t","body":""}`
	w := r.post("/v1/jobs", `{"topic":"t","body":"`+strings.Repeat("a", 10_000)+`"}`)
	refused(t, w, 429, job.CodeOverloaded, "10000")
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	for range 1000 { // what is held is given back
		r.ok("/v1/jobs", small)
	}
}

// TestAnyReadSizesGiveTheSameRequest reads a request without a length in pieces.
func TestAnyReadSizesGiveTheSameRequest(t *testing.T) {
	for _, size := range []int{1, 511, 512, 513, 4095, 4096, 5000, 100_000} {
		r := newRig(t)
		text := strings.Repeat("b", size)
		q := httptest.NewRequest("POST", "/v1/jobs", &oneByOne{bytes.NewReader([]byte(`{"topic":"t","body":"` + text + `"}`))})
		q.ContentLength = -1
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		require.Equal(t, 201, w.Code)
		require.Equal(t, text, string(r.queue.Ops()[0].GetAdd().Body))
	}
}

type oneByOne struct{ r io.Reader }

func (o *oneByOne) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 100)]) }

func TestABrokenRequestIsTheClientsFault(t *testing.T) {
	r := newRig(t)
	q := httptest.NewRequest("POST", "/v1/jobs", io.MultiReader(strings.NewReader(`{"topic"`), brokenReader{}))
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	refused(t, w, 400, job.CodeInvalid, "incomplete")
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
