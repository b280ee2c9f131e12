package tracing

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/job"
	"tarry/job/jobpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	callers = "00f067aa0ba902b7" // the span of the caller
	parent  = "00-" + traceID + "-" + callers + "-01"
	ignored = "00-" + traceID + "-" + callers + "-00" // not sampled
)

// tree returns the parent of each span, and checks that all are of one trace.
func tree(t *testing.T, spans map[string]span, trace string) map[string]string {
	parents := map[string]string{}
	for name, s := range spans {
		parents[name] = s.parent
		require.Equal(t, trace, s.trace, name)
		require.False(t, s.end.Before(s.start), name)
	}
	return parents
}

func TestTheSpansOfAJobAreOneTree(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"mail","id":"a","delay":0.05,"body":"hello"}`, parent)
	reply := r.ok("/v1/reserve", `{"topics":["mail"],"wait":10,"consumer":"w1"}`, "")
	require.Contains(t, reply, `"traceparent":"00-`+traceID+`-`)
	require.NotContains(t, reply, callers, "the job has the context of the span of its add")
	r.ok("/v1/jobs/a/finish", `{"token":"0-1-1"}`, "")
	spans := r.close()
	require.Equal(t, map[string]string{
		"add mail": callers, "due mail": "add mail", "reserve mail": "add mail", "finish mail": "reserve mail",
	}, tree(t, spans, traceID))

	add := spans["add mail"]
	require.Equal(t, "server", add.kind)
	due := add.attributes["tarry.job.due_at"]
	require.NotEmpty(t, due)
	require.Equal(t, map[string]string{
		"messaging.system": "tarry", "messaging.operation.name": "add", "messaging.operation.type": "send", "messaging.destination.name": "mail",
		"messaging.message.id": "a", "messaging.message.body.size": "5", "tarry.job.seq": "1", "tarry.job.state": "delayed", "tarry.job.due_at": due,
	}, add.attributes)

	waited := spans["due mail"]
	require.Equal(t, "internal", waited.kind)
	require.Equal(t, due, job.FormatInstant(waited.start.UnixMilli(), 0), "it begins when the job is due")
	require.Contains(t, waited.attributes, "tarry.job.lateness_seconds")

	reserve := spans["reserve mail"]
	require.Equal(t, "server", reserve.kind)
	require.False(t, reserve.start.Before(waited.start), "the wait before the due time is not its")
	delete(reserve.attributes, "tarry.job.due_at")
	require.Equal(t, map[string]string{
		"messaging.system": "tarry", "messaging.operation.name": "reserve", "messaging.operation.type": "receive", "messaging.destination.name": "mail",
		"messaging.message.id": "a", "messaging.message.body.size": "5", "tarry.job.seq": "1", "tarry.job.attempts": "1", "tarry.consumer": "w1",
	}, reserve.attributes)

	finish := spans["finish mail"]
	require.Equal(t, "settle", finish.attributes["messaging.operation.type"])
	require.Equal(t, "a", finish.attributes["messaging.message.id"])
	require.Equal(t, "gone", finish.attributes["tarry.job.state"])
	require.Empty(t, finish.status)
	require.Equal(t, "tarry", r.receiver.resource["service.name"])
	require.Equal(t, "n1", r.receiver.resource["service.instance.id"])
	require.Empty(t, r.log.String())
}

// A worker that died leaves no span of its own; what became of its reservation does.
func TestAReservationThatExpiresHasASpan(t *testing.T) {
	r := newRig(t)
	r.queue.ObserveTimeouts(r.tracer.Expired)
	r.ok("/v1/jobs", `{"topic":"mail","id":"a","ttr":0.05,"max_attempts":2,"body":"hello"}`, parent)
	for range 2 { // the second reserve waits until the first one's reservation has expired
		require.Contains(t, r.ok("/v1/reserve", `{"topics":["mail"],"wait":60}`, ""), `"id":"a"`)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(r.ok("/v1/reserve", `{"topics":["mail"]}`, ""), `"jobs":[]`) && strings.Contains(r.get("/v1/jobs/a"), `"state":"dead"`)
	}, time.Minute, 10*time.Millisecond)
	spans := r.close()
	require.Equal(t, map[string]string{
		"add mail": callers, "due mail": "add mail", "reserve mail": "add mail", "expire mail": "reserve mail",
		"reserve mail #2": "add mail", "expire mail #2": "reserve mail #2",
	}, tree(t, spans, traceID))
	for name, state := range map[string]string{"expire mail": "ready", "expire mail #2": "dead"} {
		expired := spans[name]
		require.Equal(t, "internal", expired.kind)
		require.Equal(t, "the reservation expired", expired.status)
		require.Equal(t, map[string]string{
			"messaging.system": "tarry", "messaging.operation.name": "expire", "messaging.destination.name": "mail",
			"messaging.message.id": "a", "tarry.job.seq": "1", "tarry.job.state": state,
		}, expired.attributes)
	}
}

func TestAllWaysToAddAndToEndAJobHaveSpans(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls [][2]string
		tree  map[string]string
	}{
		{"a batch", [][2]string{
			{"/v1/jobs/batch", `{"jobs":[{"topic":"a","body":1},{"topic":"b","body":1}]}`},
			{"/v1/reserve", `{"topics":["a","b"],"max":2}`},
			{"/v1/finish", `{"jobs":[{"id":"$0-1","token":"0-1-1"},{"id":"$0-2","token":"0-2-1"}]}`},
		}, map[string]string{
			"add a": callers, "due a": "add a", "reserve a": "add a", "finish a": "reserve a",
			"add b": callers, "due b": "add b", "reserve b": "add b", "finish b": "reserve b",
		}},
		{"an atomic batch", [][2]string{
			{"/v1/jobs/batch", `{"jobs":[{"topic":"a","id":"a","body":1},{"topic":"b","id":"b","body":1}],"atomic":true}`},
		}, map[string]string{"add a": callers, "add b": callers}},
		{"then", [][2]string{
			{"/v1/jobs", `{"topic":"a","id":"a","body":1}`},
			{"/v1/reserve", `{"topics":["a"]}`},
			{"/v1/jobs/a/finish", `{"token":"0-1-1","then":[{"topic":"b","body":1}]}`},
		}, map[string]string{"add a": callers, "due a": "add a", "reserve a": "add a", "finish a": "reserve a", "add b": callers}},
		{"a finish with a reserve", [][2]string{
			{"/v1/jobs/batch", `{"jobs":[{"topic":"a","body":1},{"topic":"b","body":1}]}`},
			{"/v1/reserve", `{"topics":["a"]}`},
			{"/v1/reserve", `{"topics":["b"],"finish":[{"id":"$0-1","token":"0-1-1"}]}`},
		}, map[string]string{
			"add a": callers, "due a": "add a", "reserve a": "add a", "finish a": "reserve a", "add b": callers, "due b": "add b", "reserve b": "add b",
		}},
		{"a second attempt", [][2]string{
			{"/v1/jobs", `{"topic":"a","id":"a","body":1}`},
			{"/v1/reserve", `{"topics":["a"]}`},
			{"/v1/jobs/a/release", `{"token":"0-1-1","delay":0}`},
			{"/v1/reserve", `{"topics":["a"]}`},
			{"/v1/jobs/a/bury", `{"token":"0-1-2"}`},
			{"/v1/delete", `{"jobs":[{"id":"a"}]}`},
		}, map[string]string{
			"add a": callers, "due a": "add a", "reserve a": "add a", "release a": "reserve a", "reserve a #2": "add a", "bury a": "reserve a #2", "delete a": "add a",
		}},
		{"without a token", [][2]string{
			{"/v1/jobs", `{"topic":"a","id":"a","body":1}`},
			{"/v1/reserve", `{"topics":["a"]}`},
			{"/v1/jobs/a/finish", `{}`},
		}, map[string]string{"add a": callers, "due a": "add a", "reserve a": "add a", "finish a": "add a"}},
		{"the same add again", [][2]string{
			{"/v1/jobs", `{"topic":"a","id":"a","body":1}`},
			{"/v1/jobs", `{"topic":"a","id":"a","body":1}`},
			{"/v1/reserve", `{"topics":["a"]}`},
		}, map[string]string{"add a": callers, "add a #2": callers, "due a": "add a", "reserve a": "add a"}},
		{"commands", [][2]string{
			{"/", `{"command":"add","topic":"a","id":"a","body":1}`},
			{"/", `{"command":"pop","topic":"a"}`},
			{"/", `{"command":"finish","id":"a","token":"0-1-1"}`},
		}, map[string]string{"add a": callers, "due a": "add a", "reserve a": "add a", "finish a": "reserve a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			for _, call := range c.calls {
				r.ok(call[0], call[1], parent)
			}
			require.Equal(t, c.tree, tree(t, r.close(), traceID))
		})
	}
}

func TestOperationsThatFailSayWhy(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"t","id":"a","body":1}`, parent)
	require.Contains(t, r.post("/v1/jobs", `{"topic":"t","id":"a","body":2}`, parent), "id_conflict")
	r.ok("/v1/reserve", `{"topics":["t"]}`, "")
	require.Contains(t, r.post("/v1/jobs/a/finish", `{"token":"0-1-9"}`, ""), "stale_token")
	require.Contains(t, r.post("/v1/jobs/nobody/finish", `{}`, ""), "not_found")
	r.queue.FailNext(job.NotApplied("no leader"))
	require.Contains(t, r.post("/v1/jobs/a/finish", `{"token":"0-1-1"}`, ""), "not_applied")
	r.ok("/v1/jobs/a/finish", `{"token":"0-1-1"}`, "")
	spans := r.close()
	require.Equal(t, map[string]string{
		"add t": callers, "add t #2": callers, "due t": "add t", "reserve t": "add t", "finish t": "add t", "finish t #2": "reserve t", "finish t #3": "reserve t",
	}, tree(t, spans, traceID))
	for name, code := range map[string]string{"add t": "", "add t #2": "id_conflict", "finish t": "stale_token", "finish t #2": "not_applied", "finish t #3": ""} {
		require.Equal(t, code, spans[name].attributes["error.type"], name)
		require.Equal(t, code != "", spans[name].status != "", name)
	}
}

func TestAJobThatAnotherNodeDeliveredKeepsItsTrace(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs/batch", `{"jobs":[{"topic":"t","id":"a","body":1},{"topic":"t","id":"b","body":1}]}`, parent)
	jobs, err := r.queue.Reserve(t.Context(), &jobpb.Reserve{Topics: []string{"t"}, Max: 2}, 0) // past the spans
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	r.ok("/v1/jobs/a/finish", `{"token":"0-1-1"}`, "")
	ops := []*jobpb.Op{{Kind: &jobpb.Op_Bury{Bury: &jobpb.Bury{Ref: &jobpb.Ref{Seq: 2}}}}} // as beanstalkd clients do
	_, err = r.traced.Do(t.Context(), ops)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"add t": callers, "add t #2": callers, "finish t": "add t", "bury t": "add t #2"}, tree(t, r.close(), traceID))
}

func TestWhatIsNotSampledHasNoSpans(t *testing.T) {
	none := 0.0
	run := func(trace string) (map[string]span, string) {
		r := newRig(t, func(o *Options) { o.Sample = &none })
		r.ok("/v1/jobs", `{"topic":"t","id":"a","body":1}`, trace)
		reply := r.ok("/v1/reserve", `{"topics":["t"]}`, "")
		r.ok("/v1/jobs/a/finish", `{"token":"0-1-1"}`, "")
		return r.close(), reply
	}
	spans, reply := run("")
	require.Empty(t, spans)
	require.NotContains(t, reply, "traceparent", "no context is kept of a trace that is not recorded")
	spans, reply = run(ignored)
	require.Empty(t, spans)
	require.Contains(t, reply, ignored)
	spans, _ = run(parent)
	require.Len(t, spans, 4, "the caller decides of its trace")
}

func TestATraceMayBeginWithAnAdd(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"t","id":"a","body":1}`, "")
	r.ok("/v1/reserve", `{"topics":["t"]}`, "")
	spans := r.close()
	require.Equal(t, map[string]string{"add t": "", "due t": "add t", "reserve t": "add t"}, tree(t, spans, spans["add t"].trace))
}

func TestAJobWithoutRoomForATraceIsAddedAllTheSame(t *testing.T) {
	r := newRig(t)
	add := &jobpb.Add{Topic: "t", Id: "a", TtrMs: 1000, Options: &jobpb.JobOptions{}}
	for _, c := range "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz" {
		add.Options.Headers = append(add.Options.Headers, &jobpb.Header{Name: string(c)})
	}
	require.Len(t, add.Options.Headers, job.MaxHeaders)
	results, err := r.traced.Do(t.Context(), []*jobpb.Op{{Kind: &jobpb.Op_Add{Add: add}}})
	require.NoError(t, err)
	require.NoError(t, job.ResultError(results[0]))
	r.ok("/v1/reserve", `{"topics":["t"]}`, "")
	require.Len(t, r.close(), 1, "its add")
}

func TestTheContextOfAJobIsThatOfItsHeaders(t *testing.T) {
	o := &jobpb.JobOptions{Headers: []*jobpb.Header{{Name: "a"}, {Name: "traceparent", Value: parent}, {Name: "tracestate", Value: "a=1,b=2"}, {Name: "z"}}}
	c := contextOf(o)
	require.Equal(t, parent, traceParent(c))
	add := &jobpb.Add{Options: o}
	require.True(t, setContext(add, c.WithTraceFlags(0)))
	require.NoError(t, job.Newest().CheckJobOptions(add.Options))
	require.Equal(t, ignored, add.Options.Headers[1].Value)
	require.Equal(t, "a=1,b=2", add.Options.Headers[2].Value)
	o = &jobpb.JobOptions{Headers: []*jobpb.Header{{Name: "traceparent", Value: parent}, {Name: "tracestate", Value: "no list"}}}
	require.Equal(t, parent, traceParent(contextOf(o)))
	require.False(t, contextOf(nil).IsValid())
}

func TestReservationsAreForgottenBeyondABound(t *testing.T) {
	r := newReservations(2)
	for seq := range uint64(4) {
		r.put(reservation{seq: seq, generation: 1})
	}
	r.put(reservation{seq: 2, generation: 2})
	for _, c := range []struct {
		seq        uint64
		generation uint32
		known      bool
	}{{1, 1, false}, {2, 1, false}, {2, 2, true}, {2, 0, true}, {3, 1, true}} {
		_, known := r.get(c.seq, c.generation)
		require.Equal(t, c.known, known, "%d-%d", c.seq, c.generation)
	}
	r.drop(2, 1)
	r.drop(3, 1)
	_, known := r.get(2, 2)
	require.True(t, known)
	require.Equal(t, 1, r.order.Len())
	require.Len(t, r.bySeq, 1)
}

func TestEndpoints(t *testing.T) {
	for url, valid := range map[string]bool{
		"http://127.0.0.1:4318": true, "https://collector.example/base": true, "127.0.0.1:4318": false, "grpc://h:1": false,
		"http://": false, "http://me:secret@h": false, "http://h/?a=b": false, "http://h/#f": false,
	} {
		require.Equal(t, valid, CheckEndpoint(url) == nil, url)
	}
}

func TestTracesAreOffUnlessAnEndpointIsGiven(t *testing.T) {
	for _, name := range []string{"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		t.Setenv(name, "")
	}
	require.False(t, Wanted(""))
	require.True(t, Wanted("http://h"))
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h")
	require.True(t, Wanted(""))
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	require.False(t, Wanted("http://h"))
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	require.False(t, Wanted(""))
}

func TestTheEnvironmentNamesTheService(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "queue")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"t","id":"a","body":1}`, parent)
	require.Empty(t, r.close())
	t.Setenv("OTEL_TRACES_SAMPLER", "")
	r = newRig(t)
	began := time.Now().Add(-time.Second)
	r.ok("/v1/jobs", `{"topic":"t","id":"a","body":1}`, parent)
	require.True(t, r.close()["add t"].start.After(began))
	require.Equal(t, "queue", r.receiver.resource["service.name"])
}
