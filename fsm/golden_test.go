package fsm

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

var goldenFlag = flag.Bool("fsm.golden", false, "write the golden file anew")

const goldenFile = "testdata/store.golden"

// The bytes of every key and record stay the same, because a data directory outlives the
// release that wrote it. The test has a job in each list, and every kind of record.
func TestBytesInTheStoreStay(t *testing.T) {
	r := newRig(t, Options{bounds: bounds{dueRecent: 3, dueGathered: 7}})
	tellGoldenStory(r)
	got := dumpStore(t, r)
	if *goldenFlag {
		require.NoError(t, os.WriteFile(goldenFile, got, 0o600))
	}
	want, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func tellGoldenStory(r *rig) {
	ok := func(ops ...*jobpb.Op) {
		r.t.Helper()
		for i, res := range r.do(ops...) {
			require.Equal(r.t, jobpb.Code_OK, res.Code, "operation %d: %s", i, res.Message)
		}
	}
	add := func(topic string) *jobpb.Op { return opAdd(&jobpb.Add{Topic: topic}) }

	// Jobs 1 to 5, one in each list: ready, delayed, reserved, dead, ended.
	ok(add("plain"),
		opAdd(&jobpb.Add{Topic: "plain", DelayMs: 5_000, Priority: 7, MaxAttempts: 3, Body: []byte(`{"a":1}`), BodyKind: jobpb.BodyKind_BODY_JSON}),
		add("held"), add("aside"),
		opRetain("kept", 60_000), opAdd(&jobpb.Add{Topic: "kept", Id: "kept-id"}))
	ok(opReserve(1, "held"), opReserve(1, "aside"), opReserve(1, "kept"))
	r.now += 10
	ok(opBury(&jobpb.Bury{Ref: fenced(4, 1), Reason: "broken", SetPriority: true, Priority: 9}), opFinish(fenced(5, 1)))

	// 6 and 7 died after one another, 8 was deleted and is retained.
	ok(add("aside"), add("aside"), opReserve(2, "aside"), opAdd(&jobpb.Add{Topic: "kept", DelayMs: 50}))
	ok(opBury(&jobpb.Bury{Ref: bySeq(6)}), opBury(&jobpb.Bury{Ref: bySeq(7)}), opDelete(bySeq(8)))

	// 9 was moved and given another body, 10 the other way round, 11 has timed out.
	ok(add("plain"), opAdd(&jobpb.Add{Topic: "plain", Options: &jobpb.JobOptions{
		Backoff: &jobpb.Backoff{DelaysMs: []int64{100}}, Headers: []*jobpb.Header{{Name: "h", Value: "v"}},
	}}), opAdd(&jobpb.Add{Topic: "late", TtrMs: 20}), opReserve(1, "late"))
	ok(opMove(&jobpb.MoveJobs{Ref: bySeq(9), To: "elsewhere"}),
		opUpdate(&jobpb.Update{Ref: bySeq(10), Body: []byte("other"), Priority: new(uint32(3))}),
		opMove(&jobpb.MoveJobs{Ref: bySeq(10), To: "elsewhere"}),
		opUpdate(&jobpb.Update{Ref: bySeq(9), Body: []byte("after the move")}))
	r.now += 30
	ok(opAdvance(10))

	// 12 was ready before its topic had an expiry, 13 after; 14 is released with a
	// delay; 15 was revived and 16 kicked where it was.
	ok(add("fresh"), opSettings(&jobpb.SetTopic{Topic: "fresh", Settings: &jobpb.TopicSettings{ExpireMs: 3_600_000}}), add("fresh"))
	ok(add("back"), opReserve(1, "back"))
	ok(opRelease(&jobpb.Release{Ref: bySeq(14), DelayMs: 700, Reason: "later"}))
	ok(add("back"), opReserve(1, "back"), opBury(&jobpb.Bury{Ref: bySeq(15), Reason: "no"}), opKick(bySeq(15)))
	ok(opAdd(&jobpb.Add{Topic: "back", DueMs: r.now + 9_000}), opKick(bySeq(16)))

	// Topics: one that is paused, one with limits, one without jobs; and the rest.
	limited := &jobpb.TopicSettings{MaxReserved: new(uint64(5)), RateMilli: 1_500, Burst: 2}
	ok(opPause("paused", 1_000, true), opSettings(&jobpb.SetTopic{Topic: "limited", Settings: limited}),
		add("limited"), add("limited"), opReserve(1, "limited"), add("gone"), opDelete(bySeq(19)))
	ok(opPut("s", everySchedule("{{run}}")), opFire(&jobpb.FireSchedule{Name: "s", Revision: 20, NextMs: r.now + 60_000}))
	ok(opSetCluster("cluster"), opForget("server-1"), opRemove("server-2", "node-2"))

	// 22 has a short value of a header that is indexed and a long one, 23 came before the
	// setting and is still to be indexed.
	index := func(topic string) *jobpb.Op {
		return opSettings(&jobpb.SetTopic{Topic: topic, Settings: &jobpb.TopicSettings{IndexHeaders: []string{"order", "url"}}})
	}
	headers := &jobpb.JobOptions{Headers: []*jobpb.Header{{Name: "order", Value: "5"}, {Name: "url", Value: strings.Repeat("u", 65)}}}
	ok(index("orders"), opAdd(&jobpb.Add{Topic: "orders", Options: headers}))
	ok(opAdd(&jobpb.Add{Topic: "plain", Options: headers}), index("plain"))
	// 24 has a URL of its own.
	pushed := &jobpb.TopicSettings{Push: &jobpb.PushTarget{Secret: "0123456789abcdef", JobUrls: true}}
	ok(opSettings(&jobpb.SetTopic{Topic: "pushed", Settings: pushed}),
		opAdd(&jobpb.Add{Topic: "pushed", Options: &jobpb.JobOptions{PushUrl: "https://a.example/b"}}))
	// Due counts: some are in their records, of others there are changes, of which a few are
	// in the state record.
	for hours := range int64(11) {
		ok(opUpdate(&jobpb.Update{Ref: bySeq(2), DueMs: new(r.now + (1+hours)*hourMS)}), opAdd(&jobpb.Add{Topic: "plain", DelayMs: hours * hourMS}))
	}
	// A tenant.
	ok(opPutNamespace(&jobpb.Namespace{Name: "n", TopicPrefix: "or", IdPrefix: "o-", Description: "d", Quotas: &jobpb.Quotas{Jobs: new(uint64(5)), RateMilli: new(uint64(1500))}}),
		opAdd(&jobpb.Add{Topic: "orders", Id: "o-1", Body: []byte("five5")}))
	// A token that was rotated, and the settings of tokens.
	rotated := put(&jobpb.Token{
		Id: "w", Hash: hashOf(2), Rules: rulesOf("a.* b=add,read;=observe"), IdPrefix: "w-", ExpiresMs: 9_000_000, Description: "d",
		Limits: &jobpb.TokenLimits{RateMilli: 1500, Connections: 2, Waiters: 3, Bytes: 4},
	}, func(p *jobpb.PutToken) { p.OverlapMs = 1000 })
	ok(opPutToken("w", "a=add"), rotated, opSetAuth(authReport, "pub.*=add"))
	// Who may become a member, with an invitation that was used and one that was not.
	ok(opAdmission(jobpb.AdmissionMode_ADMISSION_INVITED), opInvite("b", "node-4", 5000), opInvite("a", "", 6000), opEndInvitation("b", "node-4.x"))
	r.index++
	_, _, err := r.m.Apply([]Entry{{Index: r.index, Term: 1, Data: []byte("members"), Configuration: true}}, false)
	require.NoError(r.t, err)

	// The clock goes back, and only some of the jobs are changed yet.
	ok(opReset(r.now-20, 0))
	r.now -= 20
	r.index++
	_, _, err = r.m.Apply([]Entry{{Index: r.index, Term: 1, Data: encodeEntryAt(r.t, r.now, 1, opAdvance(6))}}, false)
	require.NoError(r.t, err)
}

// dumpStore writes each pair of the store as a line.
func dumpStore(t *testing.T, r *rig) []byte {
	var b bytes.Buffer
	require.NoError(t, record.Scan(r.m.store.db, []byte{0}, []byte{255}, func(key, value []byte) error {
		_, err := fmt.Fprintf(&b, "%c %x = %x\n", key[0], key[1:], value)
		return err
	}))
	return b.Bytes()
}
