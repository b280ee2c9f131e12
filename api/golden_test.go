package api

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// The names, order and types of all fields of a job and of a topic's settings.
func TestAllFieldsOfAJob(t *testing.T) {
	extras := &jobpb.JobOptions{
		Backoff: &jobpb.Backoff{BaseMs: 1500, FactorPermille: 2000, MaxMs: 60_000, JitterPercent: 25},
		Headers: []*jobpb.Header{{Name: "a", Value: "1"}, {Name: "b", Value: `"`}},
		PushUrl: "https://a.example/?x=1",
	}
	full := func(state jobpb.State) *jobpb.Job {
		return &jobpb.Job{
			Id: "a", Seq: 7, Topic: "t", State: state, Priority: 8, DueMs: 1000, TtrMs: 2500, Attempts: 9, MaxAttempts: 10, CreatedMs: 2000, ModifiedMs: 2500,
			ReservedUntilMs: 3000, ReservedBy: "worker-1", Reason: "why", Reserves: 11, Timeouts: 12, Releases: 13, Buries: 14, Kicks: 15, DelayMs: 500, Revision: 16,
			Options: extras, LastError: "bad", DiedMs: 4000, ExpiresMs: 5000,
		}
	}
	begins := `{"id":"a","seq":7,"topic":"t","state":"`
	middle := `","revision":16,"priority":8,"due_at":"1970-01-01T00:00:01.000Z","delay":0.5,"ttr":2.5,"attempts":9,"max_attempts":10,` +
		`"created_at":"1970-01-01T00:00:02.000Z","modified_at":"1970-01-01T00:00:02.500Z",`
	ends := `"expires_at":"1970-01-01T00:00:05.000Z","reason":"why","last_error":"bad","reserves":11,"timeouts":12,"releases":13,"buries":14,"kicks":15,` +
		`"backoff":{"base":1.5,"factor":2,"max":60,"jitter":0.25},"push_url":"https://a.example/?x=1","headers":{"a":"1","b":"\""}}`
	write := func(j *jobpb.Job) string {
		var w writer
		w.beginObject()
		w.job(j)
		w.endObject()
		return string(w.b)
	}
	require.Equal(t, begins+"reserved"+middle+`"reserved_until":"1970-01-01T00:00:03.000Z","reserved_by":"worker-1",`+ends, write(full(jobpb.State_STATE_RESERVED)))
	require.Equal(t, begins+"dead"+middle+`"died_at":"1970-01-01T00:00:04.000Z",`+ends, write(full(jobpb.State_STATE_DEAD)))
	done := full(jobpb.State_STATE_FINISHED)
	done.EndedMs, done.RetainedUntilMs = 6000, 7000
	require.Equal(t, begins+"finished"+middle+`"finished_at":"1970-01-01T00:00:06.000Z","retained_until":"1970-01-01T00:00:07.000Z",`+ends, write(done))
}

func TestAllSettingsOfATopic(t *testing.T) {
	s := &jobpb.TopicSettings{
		Revision: 3, TtrMs: new(int64(1500)), MaxAttempts: new(uint32(0)), Backoff: &jobpb.Backoff{DelaysMs: []int64{1000, 2500}},
		MaxPending: new(uint64(0)), MaxReserved: new(uint64(5)), RateMilli: 2_500_000, Burst: 6, ExpireMs: 7000, Expiry: jobpb.Expiry_EXPIRY_DROP,
		RetainMs: 8000, RetainMax: 9, SpreadMs: 9250, LateFinish: jobpb.LateFinish_LATE_FINISH_REFUSE, RequireToken: true,
		Push:         &jobpb.PushTarget{Url: "https://a.example/x", Secret: "0123456789abcdef", TimeoutMs: 4000, Concurrency: 5, JobUrls: true},
		IndexHeaders: []string{"order", "customer"},
		Description:  "mail to customers",
	}
	write := func() string {
		var w writer
		w.beginObject()
		w.settings(s)
		w.endObject()
		return string(w.b)
	}
	require.Equal(t, `{"revision":3,"settings":{"ttr":1.5,"max_attempts":0,"backoff":{"delays":[1,2.5]},"max_pending":0,"max_reserved":5,"rate":2500,"burst":6,`+
		`"expire":7,"expiry":"drop","spread":9.25,"retain":8,"retain_max":9,"late_finish":"refuse","require_token":true,"index_headers":["order","customer"],`+
		`"push":{"url":"https://a.example/x","has_secret":true,"timeout":4,"concurrency":5,"job_urls":true},"description":"mail to customers"}}`, write())
	s = &jobpb.TopicSettings{Expiry: jobpb.Expiry_EXPIRY_DEAD}
	require.Equal(t, `{"revision":0,"settings":{"expiry":"dead"}}`, write())
	s = nil
	require.Equal(t, `{"revision":0,"settings":{}}`, write())
}

// The errors for invalid settings.
func TestInvalidSettings(t *testing.T) {
	r := newRig(t)
	for request, says := range map[string]string{
		`{"ttr":0}`:                               "ttr is 0 s; it must be between 0.001 and 315360000 s",
		`{"ttr":-1}`:                              "ttr is -1 s; it must be between 0.001 and 315360000 s",
		`{"ttr":"1"}`:                             "ttr must be a number, not a string",
		`{"ttr":1,"ttr":1}`:                       "ttr is given twice",
		`{"tttr":1}`:                              "tttr is not a field of this call",
		`{"max_attempts":-1}`:                     "max_attempts is -1; it must be between 0 and 4294967295",
		`{"max_attempts":1.5}`:                    "max_attempts must be a whole number, not 1.5",
		`{"max_attempts":4294967296}`:             "max_attempts is 4294967296; it must be between 0 and 4294967295",
		`{"backoff":true}`:                        "backoff must be a number of seconds, a list of them or an object, not true or false",
		`{"backoff":[-1]}`:                        "backoff.delays is -1 s; it must be between 0 and 1000000000 s",
		`{"max_pending":-1}`:                      "max_pending is -1; it must be between 0 and 9223372036854775807",
		`{"max_reserved":0}`:                      "max_reserved is 0; it must be at least 1 (pause the topic to hand out nothing)",
		`{"rate":0}`:                              "rate is 0 jobs a second; it must be between 0.001 and 1000000",
		`{"rate":0.0015}`:                         "rate is 0.0015 jobs a second; it can have at most three decimals",
		`{"burst":3}`:                             "burst is 3, but there is no rate for it; give both",
		`{"burst":0}`:                             "burst is 0; it must be between 1 and 1000000",
		`{"expire":1e10}`:                         "expire is 10000000000 s; it must be between 0 and 1000000000 s",
		`{"expire":1,"expiry":"maybe"}`:           `expiry is "maybe"; it takes drop and dead`,
		`{"spread":1e7}`:                          "spread is 10000000 s; it must be between 0 and 604800 s",
		`{"retain":1e8}`:                          "retain is 100000000 s; it must be between 0 and 31536000 s",
		`{"late_finish":"maybe"}`:                 `late_finish is "maybe"; it takes accept and refuse`,
		`{"late_finish":1}`:                       "late_finish must be a string, not a number",
		`{"require_token":"yes"}`:                 "require_token must be true or false, not a string",
		`{"index_headers":"order"}`:               "index_headers must be a list, not a string",
		`{"index_headers":[""]}`:                  "a name in index_headers is missing or empty; it takes 1 to 200 bytes",
		`{"index_headers":["a","a"]}`:             `index_headers has "a" twice`,
		`{"index_headers":["a","b","c","d","e"]}`: "index_headers has more than 4 items, which is the limit",
		`{"push":{"url":""}}`:                     "push.url is missing; only a push with job_urls can do without",
		`{"push":"https://hooks.example"}`:        "push must be an object, not a string",
		`{"push":{"to":1}}`:                       "push.to is not a field of this call",

		`{"max_reserved":-1}`:        "max_reserved is -1; it must be at least 1 (pause the topic to hand out nothing)",
		`{"rate":1000000.001}`:       "rate is 1.000000001e+06 jobs a second; it must be between 0.001 and 1000000",
		`{"rate":"5"}`:               "rate must be a number, not a string",
		`{"rate":5,"burst":1000001}`: "burst is 1000001; it must be between 1 and 1000000",
		`{"max_pending":1.5}`:        "max_pending must be a whole number, not 1.5",
		`{"max_pending":"5"}`:        "max_pending must be a whole number, not a string",
		`{"ttr":1e9}`:                "ttr is 1000000000 s; it must be between 0.001 and 315360000 s",
		`{"backoff":{"jitter":0.5}}`: "backoff has neither delays nor base; give one",
		`{"backoff":{"bas":1}}`:      "backoff.bas is not a field of this call",
		`{"expire":-1}`:              "expire is -1 s; it must be between 0 and 1000000000 s",
		`{"spread":-1}`:              "spread is -1 s; it must be between 0 and 604800 s",
		`{"retain":-1}`:              "retain is -1 s; it must be between 0 and 31536000 s",
		`{"retain":"1h"}`:            "retain must be a number, not a string",
		`{"revision":5}`:             "revision is not a field of this call",
		``:                           "the request is empty; it takes a JSON object",
		`{"description":"` + strings.Repeat("x", 201) + `"}`: "description has 201 bytes; the limit is 200",
	} {
		for _, method := range []string{"PUT", "PATCH"} {
			w := r.do(method, "/v1/topics/mail/settings", request)
			require.Equal(t, 400, w.Code, request)
			var answer struct {
				Error string `json:"error"`
			}
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), request)
			require.Equal(t, says, answer.Error, request)
		}
	}
}
