package fsm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

const (
	authOff     = jobpb.AuthMode_AUTH_OFF
	authReport  = jobpb.AuthMode_AUTH_REPORT
	authEnforce = jobpb.AuthMode_AUTH_ENFORCE
)

// needs is what an operation needs: verbs by topic, or under "" those of the cluster.
type needs map[string]auth.Verbs

// rightCase is an operation on the state that authRig makes.
type rightCase struct {
	op    *jobpb.Op
	needs needs // nil: only the leader makes it
}

// rightCases has at least one case for each operation.
func rightCases() []rightCase {
	from := func(verbs auth.Verbs) needs { return needs{"a.x": verbs} }
	both := func(verbs auth.Verbs) needs { return needs{"a.x": verbs, "b.x": auth.Add} }
	reserved, dead := fenced(2, 1), bySeq(3)
	pushed := &jobpb.JobOptions{PushUrl: "https://c.example/"}
	sweep := &jobpb.Sweep{Scan: 10}
	push := &jobpb.PushTarget{Url: "https://a.example/", Secret: "0123456789abcdef", JobUrls: true}
	return []rightCase{
		{opAdd(&jobpb.Add{Topic: "a.x"}), from(auth.Add)},
		{opAdd(&jobpb.Add{Topic: "pushed", Options: pushed}), needs{"pushed": auth.Add | auth.Push}},
		{opAdd(&jobpb.Add{Topic: "b.x", Id: "a-job", IfExists: jobpb.IfExists_IF_EXISTS_REPLACE}), needs{"a.x": auth.Manage, "b.x": auth.Add}},
		{opAdd(&jobpb.Add{Topic: "a.x", Id: "a-job", DelayMs: 5, IfExists: jobpb.IfExists_IF_EXISTS_POSTPONE}), from(auth.Add)},
		{opAdd(&jobpb.Add{Topic: "b.x", Id: "a-job", IfExists: jobpb.IfExists_IF_EXISTS_REPLACE_ENDED}), needs{"a.x": auth.Read, "b.x": auth.Add}},
		{opAdd(&jobpb.Add{Topic: "b.x", Id: "a-job", IfExists: jobpb.IfExists_IF_EXISTS_KEEP}), needs{"a.x": auth.Read, "b.x": auth.Add}},
		{opAtomicAdd(&jobpb.AtomicAdd{Adds: []*jobpb.Add{{Topic: "a.x", TtrMs: 1}, {Topic: "b.x", TtrMs: 1}}}), both(auth.Add)},
		{opAtomicAdd(&jobpb.AtomicAdd{Finish: &jobpb.Finish{Ref: reserved}, Adds: []*jobpb.Add{{Topic: "b.x", TtrMs: 1}}}), both(auth.Consume)},
		{opImport(&jobpb.Add{Topic: "a.x", DueMs: 1}), from(auth.Add | auth.Manage)},
		{opImport(&jobpb.Add{Topic: "pushed", DueMs: 1, Options: pushed}), needs{"pushed": auth.Add | auth.Manage | auth.Push}},
		{opImport(&jobpb.Add{Topic: "a.x", DueMs: 1, Id: "a-job"}), from(auth.Add | auth.Manage)},
		{opFinish(reserved), from(auth.Consume)},
		{opRelease(&jobpb.Release{Ref: reserved}), from(auth.Consume)},
		{opTouch(reserved, 0), from(auth.Consume)},
		{opBury(&jobpb.Bury{Ref: reserved}), from(auth.Consume)},
		{opReserveJob(byID("a-job"), 0), from(auth.Consume)},
		{opReserve(1, "a.x"), from(auth.Consume)},
		{opReserve(1, "a.x", "b.x"), needs{"a.x": auth.Consume, "b.x": auth.Consume}},
		{opDelete(byID("a-job")), from(auth.Manage)},
		{opUpdate(&jobpb.Update{Ref: byID("a-job"), Priority: new(uint32(9))}), from(auth.Manage)},
		{opUpdate(&jobpb.Update{Ref: bySeq(4), PushUrl: new("https://d.example/")}), needs{"pushed": auth.Manage | auth.Push}},
		{opKick(dead), from(auth.Manage)},
		{&jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: dead, ToTopic: "b.x"}}}, both(auth.Manage)},
		{opKickTopic("a.x", 1), from(auth.Manage)},
		{&jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: "a.x", Max: 1, ToTopic: "b.x", Sweep: sweep}}}, both(auth.Manage)},
		{opMove(&jobpb.MoveJobs{Topic: "a.x", To: "b.x", Max: 1}), both(auth.Manage)},
		{opMove(&jobpb.MoveJobs{Ref: dead, To: "b.x"}), both(auth.Manage)},
		{opPurge(&jobpb.Purge{Topic: "a.x", State: jobpb.State_STATE_DEAD, Max: 1, Sweep: sweep}), from(auth.Manage)},
		{&jobpb.Op{Kind: &jobpb.Op_ReleaseTopic{ReleaseTopic: &jobpb.ReleaseTopic{Topic: "a.x", Max: 1, Sweep: sweep}}}, from(auth.Manage)},
		{opPause("a.x", 5, false), from(auth.Manage)},
		{opSettings(&jobpb.SetTopic{Topic: "a.x", Settings: &jobpb.TopicSettings{Description: "d"}}), from(auth.Manage)},
		{opSettings(&jobpb.SetTopic{Topic: "a.x", Settings: &jobpb.TopicSettings{Push: push}}), from(auth.Manage | auth.Push)},
		// The target stays, or is removed.
		{opSettings(&jobpb.SetTopic{Topic: "pushed", Settings: &jobpb.TopicSettings{Push: push, Description: "d"}}), needs{"pushed": auth.Manage}},
		{opSettings(&jobpb.SetTopic{Topic: "other", Settings: &jobpb.TopicSettings{Description: "d"}}), needs{"other": auth.Manage}},
		{opPut("new", &jobpb.Schedule{Spec: "@daily", Zone: "UTC", MissedAfterMs: 1, Job: &jobpb.Add{Topic: "b.x", TtrMs: 1}}), needs{"b.x": auth.Manage | auth.Add}},
		{opPut("s", &jobpb.Schedule{Spec: "@daily", Zone: "UTC", MissedAfterMs: 1, Job: &jobpb.Add{Topic: "b.x", TtrMs: 1}}), needs{"a.x": auth.Manage, "b.x": auth.Manage | auth.Add}},
		{&jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: "s", Paused: new(true)}}}, from(auth.Manage)},
		{&jobpb.Op{Kind: &jobpb.Op_DeleteSchedule{DeleteSchedule: &jobpb.DeleteSchedule{Name: "s"}}}, from(auth.Manage)},
		{opFire(&jobpb.FireSchedule{Name: "s", Now: true, Runs: []*jobpb.ScheduledRun{{}}}), from(auth.Manage | auth.Add)},
		{opPutToken("new", "a.*=read"), needs{"": auth.Admin}},
		{&jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: "nothing"}}}, needs{"": auth.Admin}},
		{opSetAuth(authEnforce, "new.*=add"), needs{"": auth.Admin}},
		{opPutNamespace(&jobpb.Namespace{Name: "new", TopicPrefix: "new."}), needs{"": auth.Admin}},
		{opDeleteNamespace("nothing"), needs{"": auth.Admin}},

		{opInvite("i", "", 1000), needs{"": auth.Operate}},
		{opEndInvitation("nothing", ""), needs{"": auth.Operate}},
		{opAdmission(jobpb.AdmissionMode_ADMISSION_INVITED), needs{"": auth.Operate}},

		{opPromote(), needs{"": auth.Operate}},

		{opAdvance(1), nil},
		{followed("p", nil), nil},
		{&jobpb.Op{Kind: &jobpb.Op_AdvanceAt{AdvanceAt: &jobpb.AdvanceAt{AtMs: 1, Advance: &jobpb.Advance{Max: 1}}}}, nil},
		{opMigrate(1), nil},
		{opMark("m"), nil},
		{opSetCluster("c"), nil},
		{opForget("n"), nil},
		{opAdmit("n"), nil},
		{opRaise(1), nil},
		{opReset(1, 5), nil},
		{opChunk(1, 0, []byte("a")), nil},
		{opDropChunks(1), nil},
		{&jobpb.Op{Kind: &jobpb.Op_ReplaceState{ReplaceState: &jobpb.ReplaceState{Upload: 1}}}, nil},
		{&jobpb.Op{Kind: &jobpb.Op_ConfigLog{ConfigLog: &jobpb.ConfigLog{Epoch: 1, Changes: make([]*jobpb.ConfigChange, 1)}}}, nil},
	}
}

// opPutToken puts a token with rules of the form "topic topic=verb,verb;...".
func opPutToken(id, rules string) *jobpb.Op {
	t := &jobpb.Token{Id: id, Hash: []byte(strings.Repeat("h", 32)), Rules: rulesOf(rules)}
	return &jobpb.Op{Kind: &jobpb.Op_PutToken{PutToken: &jobpb.PutToken{Token: t}}, Principal: job.SystemPrincipal}
}

func opSetAuth(mode jobpb.AuthMode, anonymous string) *jobpb.Op {
	settings := &jobpb.AuthSettings{Mode: mode, Anonymous: rulesOf(anonymous)}
	return &jobpb.Op{Kind: &jobpb.Op_SetAuth{SetAuth: &jobpb.SetAuth{Settings: settings}}, Principal: job.SystemPrincipal}
}

func rulesOf(text string) (rules []*jobpb.Rule) {
	for line := range strings.SplitSeq(text, ";") {
		topics, verbs, found := strings.Cut(line, "=")
		if !found {
			continue
		}
		r, err := auth.ParseRule(strings.Fields(topics), strings.Split(verbs, ","))
		if err != nil {
			panic(err)
		}
		rules = append(rules, r)
	}
	return rules
}

func (n needs) text() string {
	var rules []string
	for _, topic := range slices.Sorted(maps.Keys(n)) {
		rules = append(rules, topic+"="+strings.ReplaceAll(n[topic].String(), " ", ""))
	}
	return strings.Join(rules, ";")
}

// of returns an operation as one of a principal.
func of(principal string, op *jobpb.Op) *jobpb.Op {
	op = proto.CloneOf(op)
	if r := op.GetReserve(); r != nil {
		r.Principal = principal
	} else {
		op.Principal = principal
	}
	return op
}

// newAuthRig has jobs 1 to 3 in topic a.x (ready with an id, reserved, dead), 4 in a topic with
// a target, the schedule s of a.x, and a token with the verb admin.
func newAuthRig(t *testing.T, mode jobpb.AuthMode) *rig {
	r := newRig(t, Options{})
	push := &jobpb.PushTarget{Url: "https://a.example/", Secret: "0123456789abcdef", JobUrls: true}
	for _, res := range r.do(
		opRaise(entryVersion),
		opAdd(&jobpb.Add{Topic: "a.x"}), opAdd(&jobpb.Add{Topic: "a.x"}), opAdd(&jobpb.Add{Topic: "a.x"}),
		opSettings(&jobpb.SetTopic{Topic: "pushed", Settings: &jobpb.TopicSettings{Push: push}}), opAdd(&jobpb.Add{Topic: "pushed"}),
		opDelete(bySeq(1)), opReserve(2, "a.x"), opBury(&jobpb.Bury{Ref: bySeq(3)}),
		opAdd(&jobpb.Add{Topic: "a.x", Id: "a-job"}),
		opSettings(&jobpb.SetTopic{Topic: "other", Settings: &jobpb.TopicSettings{Push: push}}),
		opPut("s", &jobpb.Schedule{Spec: "@hourly", Zone: "UTC", MissedAfterMs: 1, Job: &jobpb.Add{Topic: "a.x", TtrMs: 1}}),
		opPutToken("root", "*=admin"),
	) {
		require.Equal(t, jobpb.Code_OK, res.Code, res.Message)
	}
	if mode != authOff {
		require.Equal(t, jobpb.Code_OK, r.one(opSetAuth(mode, "")).Code)
	}
	return r
}

func TestEveryOperationHasRights(t *testing.T) {
	fields := (*jobpb.Op)(nil).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	tested := map[string]bool{}
	for _, c := range rightCases() {
		kind := string(oplog.KindOf(c.op))
		tested[kind] = true
		require.Equal(t, c.needs == nil, oplog.ByNode(c.op), kind)
	}
	for i := range fields.Len() {
		require.True(t, tested[string(fields.Get(i).Name())], "%s has no case", fields.Get(i).Name())
	}
	require.Panics(t, func() { withRights([]operation{{do: does((*jobpb.Op).GetPutNamespace, (*tx).putNamespace).do}}) }, "nobody says who may do it")
}

// What the table does not have is not done, whoever wants it.
func TestWhatIsUnknownIsNotDone(t *testing.T) {
	r := newAuthRig(t, authEnforce)
	require.ErrorContains(t, r.m.tx.checked(&jobpb.Op{Principal: "token:root"}, new(jobpb.Result)), "does not know the operation")
}

// denied are principals that may not do a case, with the rules of their tokens.
func (c rightCase) denied() map[string]string {
	all := "add,consume,read,manage,push"
	tokens := map[string]string{"empty": "", "elsewhere": "z.* a b c.x=" + all, "exact-ended": c.needs.text()}
	total := auth.Verbs(0)
	for topic, verbs := range c.needs {
		total |= verbs
		for i, name := range auth.VerbNames() {
			verb := auth.Verbs(2) << i
			if verbs&verb == 0 {
				continue
			}
			less := maps.Clone(c.needs)
			if less[topic] &^= verb; less[topic] == 0 {
				delete(less, topic)
			}
			tokens["less-"+name+"-"+strings.ReplaceAll(topic, ".", "-")] = less.text()
		}
	}
	switch c.needs[""] {
	case auth.Admin:
		tokens["elsewhere"] = "*=" + all + ",observe,operate"
		return tokens
	case auth.Operate:
		tokens["elsewhere"] = "*=" + all + ",observe,admin"
		return tokens
	}
	for i, name := range auth.VerbNames() {
		if total != auth.Verbs(2)<<i {
			tokens["only-"+name] = "*=" + name
		}
	}
	return tokens
}

// Whoever lacks a right cannot do an operation, and changes nothing by trying.
func TestWhatIsNotGrantedIsRefused(t *testing.T) {
	for i, c := range rightCases() {
		if c.needs == nil {
			continue
		}
		kind := string(oplog.KindOf(c.op))
		t.Run(fmt.Sprintf("%d-%s", i, kind), func(t *testing.T) {
			r := newAuthRig(t, authEnforce)
			tokens := c.denied()
			for id, rules := range tokens {
				op := opPutToken(id, rules)
				if id == "exact-ended" {
					op.GetPutToken().Token.ExpiresMs = r.now
				}
				require.Equal(t, jobpb.Code_OK, r.one(op).Code, rules)
			}
			before := r.digest()
			for _, who := range append(slices.Sorted(maps.Keys(tokens)), "", "unknown") {
				res := r.one(of(who, c.op))
				require.Contains(t, []jobpb.Code{jobpb.Code_FORBIDDEN, jobpb.Code_NOT_FOUND, jobpb.Code_ID_CONFLICT}, res.Code, "%s (%s): %s", who, tokens[who], res.Message)
				require.NotNil(t, res.Details.GetDenied(), who)
				require.Equal(t, before, r.digest(), "%s (%s) has changed something", who, tokens[who])
				require.Empty(t, res.Jobs)
				require.Zero(t, res.Seq, "%s learns of a job", who)
				want := map[string]auth.Denial{"": auth.NoToken, "unknown": auth.UnknownToken, "exact-ended": auth.ExpiredToken}[who]
				if want == auth.Allowed {
					want = auth.NotGranted
				}
				require.Equal(t, want, auth.Denial(res.Details.Denied.Reason), who)
				if res.Code == jobpb.Code_FORBIDDEN {
					require.Contains(t, res.Message, "is not allowed")
				}
			}
		})
	}
}

// With just the rights that it needs an operation does what it does without checks: as that of
// a token, of nobody, of the system, in the mode that reports, and when nothing is checked.
func TestWhatIsGrantedIsDone(t *testing.T) {
	for i, c := range rightCases() {
		t.Run(fmt.Sprintf("%d-%s", i, oplog.KindOf(c.op)), func(t *testing.T) {
			open := newAuthRig(t, authOff)
			principal := ""
			if c.needs[""] == auth.Admin {
				principal = "root"
			}
			want := open.one(of(principal, c.op))
			require.Nil(t, want.Details.GetDenied())
			try := func(mode jobpb.AuthMode, who, anonymous string, denied bool) {
				t.Helper()
				r := newAuthRig(t, authOff)
				r.do(opPutToken("exact", c.needs.text()), opSetAuth(mode, anonymous))
				got := r.one(of(who, c.op))
				require.Equal(t, denied, got.Details.GetDenied() != nil, "%s, %q", mode, who)
				require.Equal(t, want.Code, got.Code, "%s, %q: %s", mode, who, got.Message)
				require.Equal(t, want.Seq, got.Seq)
				require.Equal(t, want.Count, got.Count)
				require.Len(t, got.Jobs, len(want.Jobs))
				require.Equal(t, open.topic("a.x"), r.topic("a.x"))
				require.Equal(t, open.topic("b.x"), r.topic("b.x"))
			}
			if c.needs == nil {
				try(authEnforce, "", "", false)
				return
			}
			try(authEnforce, "exact", "", false)
			try(authEnforce, job.SystemPrincipal, "", false)
			if c.needs[""] != auth.Admin {
				try(authEnforce, "", c.needs.text(), false)
				try(authReport, "nobody", "", true)
				try(authOff, "nobody", "", false)
			}
		})
	}
}

// What needs the verb admin needs it in every mode.
func TestAdminIsNeededInEveryMode(t *testing.T) {
	for _, mode := range []jobpb.AuthMode{authOff, authReport, authEnforce} {
		r := newAuthRig(t, mode)
		for _, c := range rightCases() {
			if c.needs[""] != auth.Admin {
				continue
			}
			for _, who := range []string{"", "unknown"} {
				require.Equal(t, jobpb.Code_FORBIDDEN, r.one(of(who, c.op)).Code, "%s: %s", mode, oplog.KindOf(c.op))
			}
			require.NotEqual(t, jobpb.Code_FORBIDDEN, r.one(of("root", c.op)).Code)
		}
	}
}

// Who may not read a topic does not learn that a job is there: it looks as if it were not.
func TestJobsOfOthersAreHidden(t *testing.T) {
	r := newAuthRig(t, authEnforce)
	r.do(opPutToken("other", "b.*=add,consume,manage,read"), opPutToken("reader", "a.*=read"))
	for _, c := range []*jobpb.Op{
		opFinish(fenced(2, 1)), opDelete(bySeq(3)), opKick(bySeq(3)), opTouch(fenced(2, 9), 0), opReserveJob(byID("a-job"), 0),
		opUpdate(&jobpb.Update{Ref: byID("a-job")}), opMove(&jobpb.MoveJobs{Ref: bySeq(3), To: "b.x"}),
		opAtomicAdd(&jobpb.AtomicAdd{Finish: &jobpb.Finish{Ref: fenced(2, 1)}, Adds: []*jobpb.Add{{Topic: "b.x", TtrMs: 1}}}),
	} {
		hidden := r.one(of("other", c))
		require.Equal(t, jobpb.Code_NOT_FOUND, hidden.Code, "%s", oplog.KindOf(c))
		require.NotContains(t, hidden.Message, "a.x")
		if oplog.KindOf(c) != "move_jobs" && oplog.KindOf(c) != "atomic_add" { // they name b.x, too
			forbidden := r.one(of("reader", c))
			require.Equal(t, jobpb.Code_FORBIDDEN, forbidden.Code)
			require.Contains(t, forbidden.Message, `on topic "a.x" is not allowed`)
		}
	}
	missing := r.one(of("other", opDelete(bySeq(99)))).Message
	require.Equal(t, missing, strings.Replace(r.one(of("other", opDelete(bySeq(3)))).Message, "number 3", "number 99", 1))

	for _, ifExists := range []jobpb.IfExists{jobpb.IfExists_IF_EXISTS_CONFLICT, jobpb.IfExists_IF_EXISTS_KEEP, jobpb.IfExists_IF_EXISTS_REPLACE, jobpb.IfExists_IF_EXISTS_POSTPONE, jobpb.IfExists_IF_EXISTS_REPLACE_ENDED} {
		add := &jobpb.Add{Topic: "b.x", Id: "a-job", IfExists: ifExists, TtrMs: 60_000}
		res := r.one(of("other", opAdd(add)))
		require.Equal(t, jobpb.Code_ID_CONFLICT, res.Code)
		require.Equal(t, `id "a-job" is taken`, res.Message)
		require.Zero(t, res.Seq)
		require.False(t, res.Existing)
		if ifExists <= jobpb.IfExists_IF_EXISTS_KEEP {
			res = r.one(of("other", opAtomicAdd(&jobpb.AtomicAdd{Adds: []*jobpb.Add{add}})))
			require.Equal(t, jobpb.Code_ID_CONFLICT, res.Code)
			require.Empty(t, res.Details.GetParts())
		}
	}
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(of("other", &jobpb.Op{Kind: &jobpb.Op_DeleteSchedule{DeleteSchedule: &jobpb.DeleteSchedule{Name: "s"}}})).Code)
	// The same add again is not a leak: it is the producer's own job.
	r.one(opPutToken("producer", "a.*=add"))
	again := r.one(of("producer", opAdd(&jobpb.Add{Topic: "a.x", Id: "a-job"})))
	require.Equal(t, jobpb.Code_OK, again.Code)
	require.True(t, again.Existing)
}

// A consumer deletes what it holds, as beanstalkd's do, and nothing else.
func TestAConsumerDeletesWhatItHolds(t *testing.T) {
	for _, who := range []string{"consume", "manage"} {
		r := newAuthRig(t, authEnforce)
		r.do(opPutToken(who, "a.*="+who), opPutToken("other", "b.*=consume,manage;a.*=add,push,read"))
		free := map[string]jobpb.Code{"consume": jobpb.Code_NOT_FOUND, "manage": jobpb.Code_OK}[who]
		res := r.do(of("other", opDelete(fenced(2, 1))), of(who, opDelete(fenced(2, 9))), of(who, opDelete(byID("a-job"))), of(who, opDelete(fenced(2, 1))))
		require.Equal(t, []jobpb.Code{jobpb.Code_FORBIDDEN, jobpb.Code_STALE_TOKEN, free, jobpb.Code_OK}, codesOf(res), who)
		require.Nil(t, res[3].Details.GetDenied())
	}
}

// A job's topic counts as it is when the operation is applied.
func TestRightsFollowAJobThatMoves(t *testing.T) {
	r := newAuthRig(t, authEnforce)
	r.do(opPutToken("a", "a.*=consume,read"), opPutToken("b", "b.*=consume,read"))
	res := r.do(
		of("a", opTouch(fenced(2, 1), 0)), of("b", opTouch(fenced(2, 1), 0)),
		of(job.SystemPrincipal, opMove(&jobpb.MoveJobs{Ref: bySeq(2), To: "b.x"})),
		of("a", opTouch(fenced(2, 1), 0)), of("b", opTouch(fenced(2, 1), 0)),
	)
	require.Equal(t, []jobpb.Code{jobpb.Code_OK, jobpb.Code_NOT_FOUND, jobpb.Code_OK, jobpb.Code_NOT_FOUND, jobpb.Code_OK}, codesOf(res))
}

// Nothing behind a revocation in the log is done, also in the same entry.
func TestARevocationCountsAtOnce(t *testing.T) {
	r := newAuthRig(t, authEnforce)
	add := of("w", opAdd(&jobpb.Add{Topic: "a.x"}))
	revoke := of("root", &jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: "w"}}})
	res := r.do(add, opPutToken("w", "a.*=add"), add, opPutToken("w", "a.*=read"), add, opPutToken("w", "a.*=add"), add, revoke, add)
	require.Equal(t, []jobpb.Code{
		jobpb.Code_FORBIDDEN, jobpb.Code_OK, jobpb.Code_OK, jobpb.Code_OK, jobpb.Code_FORBIDDEN, jobpb.Code_OK, jobpb.Code_OK, jobpb.Code_OK, jobpb.Code_FORBIDDEN,
	}, codesOf(res))
}

// A replacement that takes the job out of another topic needs there what a delete needs.
func TestAReplacementReachesNoOtherTopicWithAddAlone(t *testing.T) {
	replace := func(topic string) *jobpb.Op {
		return of("adder", opAdd(&jobpb.Add{Topic: topic, Id: "a-job", TtrMs: 1, IfExists: jobpb.IfExists_IF_EXISTS_REPLACE}))
	}
	r := newAuthRig(t, authEnforce)
	r.do(opPutToken("adder", "a.* b.*=add"), opPutToken("manager", "a.*=add,manage;b.*=add"))
	hidden := r.one(replace("b.x"))
	require.Equal(t, jobpb.Code_ID_CONFLICT, hidden.Code)
	require.Equal(t, `id "a-job" is taken`, hidden.Message)
	require.Equal(t, jobpb.Code_OK, r.one(replace("a.x")).Code, "within the topic the verb add is enough")
	res := r.one(of("manager", replace("b.x")))
	require.Equal(t, jobpb.Code_OK, res.Code, res.Message)
	require.True(t, res.Replaced)

	old := newRig(t, Options{})
	res = old.do(opAdd(&jobpb.Add{Topic: "a.x", Id: "a-job"}), opPutToken("root", "*=admin"), opSetAuth(authEnforce, ""), opPutToken("adder", "a.* b.*=add"), replace("b.x"))[4]
	require.Equal(t, jobpb.Code_OK, res.Code, "before the cluster version that decides so: %s", res.Message)
}

// Whichever way a job with a push_url enters a topic, its principal needs there what an add of
// that job needs: it is posted with the topic's secret.
func TestEveryWayIntoATopicNeedsWhatAnAddNeeds(t *testing.T) {
	pushed := &jobpb.JobOptions{PushUrl: "https://c.example/"}
	add := &jobpb.Add{Topic: "theirs", TtrMs: 1, Options: pushed}
	schedule := &jobpb.Schedule{Spec: "@daily", Zone: "UTC", MissedAfterMs: 1, Job: add}
	kickTo := func(most, rateMilli uint32) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{
			Topic: "mine", Max: most, ToTopic: "theirs", RateMilli: rateMilli, Sweep: &jobpb.Sweep{Scan: 10},
		}}}
	}
	const reserved, delayed, dead = 1, 2, 3
	ways := []struct {
		name string
		op   *jobpb.Op
		late bool // decided so from entryVersion on
	}{
		{"add", opAdd(add), false},
		{"replace", opAdd(&jobpb.Add{Topic: "theirs", Id: "own", TtrMs: 1, Options: pushed, IfExists: jobpb.IfExists_IF_EXISTS_REPLACE}), false},
		{"adds together", opAtomicAdd(&jobpb.AtomicAdd{Adds: []*jobpb.Add{add}}), false},
		{"then", opAtomicAdd(&jobpb.AtomicAdd{Finish: &jobpb.Finish{Ref: fenced(reserved, 1)}, Adds: []*jobpb.Add{add}}), false},
		{"import", opImport(&jobpb.Add{Topic: "theirs", DueMs: 1, Options: pushed}), false},
		{"schedule", opPut("new", schedule), false},
		{"a run by hand", opFire(&jobpb.FireSchedule{Name: "s", Now: true, Runs: []*jobpb.ScheduledRun{{}}}), true},
		{"move of a reserved job", opMove(&jobpb.MoveJobs{Ref: bySeq(reserved), To: "theirs"}), true},
		{"move of a dead job", opMove(&jobpb.MoveJobs{Ref: byID("own"), To: "theirs"}), true},
		{"move of all jobs", opMove(&jobpb.MoveJobs{Topic: "mine", To: "theirs", Max: 100}), true},
		{"move of a part", opMove(&jobpb.MoveJobs{Topic: "mine", To: "theirs", Max: 1, States: []jobpb.State{jobpb.State_STATE_DEAD}}), true},
		{"kick of a delayed job", &jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: bySeq(delayed), ToTopic: "theirs"}}}, true},
		{"kick of a dead job", &jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: bySeq(dead), ToTopic: "theirs"}}}, true},
		{"kick of a topic", kickTo(1, 0), true},
		{"kick of a topic at a rate", kickTo(1, 1000), true},
	}
	for _, version := range []uint32{1, entryVersion} {
		for _, way := range ways {
			t.Run(fmt.Sprintf("version %d, %s", version, way.name), func(t *testing.T) {
				r := newRig(t, Options{})
				push := &jobpb.PushTarget{Url: "https://a.example/", Secret: "0123456789abcdef", JobUrls: true}
				for _, res := range r.do(
					opRaise(version),
					opSettings(&jobpb.SetTopic{Topic: "mine", Settings: &jobpb.TopicSettings{Push: push}}),
					opSettings(&jobpb.SetTopic{Topic: "theirs", Settings: &jobpb.TopicSettings{Push: push}}),
					opAdd(&jobpb.Add{Topic: "mine", TtrMs: 1000, Options: pushed}), opReserve(1, "mine"),
					opAdd(&jobpb.Add{Topic: "mine", TtrMs: 1000, DelayMs: 1000, Options: pushed}),
					opAdd(&jobpb.Add{Topic: "mine", Id: "own", TtrMs: 1000, Options: pushed}), opReserve(1, "mine"), opBury(&jobpb.Bury{Ref: byID("own")}),
					opPut("s", schedule), opSetAuth(authOff, ""), opPutToken("root", "*=admin"), opSetAuth(authEnforce, ""),
					opPutToken("without", "mine=add,consume,read,manage,push;theirs=add,consume,read,manage"),
					opPutToken("with", "mine=add,consume,read,manage,push;theirs=add,consume,read,manage,push"),
				) {
					require.Equal(t, jobpb.Code_OK, res.Code, res.Message)
				}
				if way.late && version < entryVersion {
					require.Equal(t, jobpb.Code_OK, r.one(of("without", way.op)).Code)
					return
				}
				before := r.digest()
				res := r.one(of("without", way.op))
				require.Equal(t, jobpb.Code_FORBIDDEN, res.Code)
				require.Equal(t, uint32(auth.Push), res.Details.GetDenied().GetVerbs())
				require.Equal(t, "theirs", res.Details.GetDenied().GetTopic())
				require.Equal(t, before, r.digest())
				res = r.one(of("with", way.op))
				require.Equal(t, jobpb.Code_OK, res.Code, res.Message)
				require.NotEqual(t, before, r.digest())
			})
		}
	}
}

// A token ends by the clock of the entries.
func TestATokenEndsByTheClockOfTheLog(t *testing.T) {
	r := newAuthRig(t, authEnforce)
	put := opPutToken("w", "a.*=add")
	put.GetPutToken().Token.ExpiresMs = r.now + 10
	add := of("w", opAdd(&jobpb.Add{Topic: "a.x"}))
	require.Equal(t, []jobpb.Code{jobpb.Code_OK, jobpb.Code_OK}, codesOf(r.do(put, add)))
	r.now += 9
	require.Equal(t, jobpb.Code_OK, r.one(add).Code)
	r.now++
	require.Equal(t, jobpb.Code_FORBIDDEN, r.one(add).Code)
}

// The ids of what a token adds begin with its prefix.
func TestIDsBeginWithThePrefixOfTheToken(t *testing.T) {
	r := newAuthRig(t, authEnforce)
	put := opPutToken("w", "a.*=add,manage")
	put.GetPutToken().Token.IdPrefix = "w-"
	schedule := func(name string) *jobpb.Op {
		return of("w", opPut(name, &jobpb.Schedule{Spec: "@daily", Zone: "UTC", MissedAfterMs: 1, Job: &jobpb.Add{Topic: "a.x", TtrMs: 1}}))
	}
	res := r.do(put,
		of("w", opAdd(&jobpb.Add{Topic: "a.x", Id: "w-1"})), of("w", opAdd(&jobpb.Add{Topic: "a.x"})), of("w", opAdd(&jobpb.Add{Topic: "a.x", Id: "v-1"})),
		of("w", opAtomicAdd(&jobpb.AtomicAdd{Adds: []*jobpb.Add{{Topic: "a.x", TtrMs: 1, Id: "w-2"}, {Topic: "a.x", TtrMs: 1, Id: "v-2"}}})),
		schedule("w-s"), schedule("v-s"))
	require.Equal(t, []jobpb.Code{
		jobpb.Code_OK, jobpb.Code_OK, jobpb.Code_OK, jobpb.Code_FORBIDDEN, jobpb.Code_FORBIDDEN, jobpb.Code_OK, jobpb.Code_FORBIDDEN,
	}, codesOf(res))
	require.Equal(t, uint32(auth.OtherID), res[3].Details.Denied.Reason)
}

// What was committed ahead for a waiter is decided at its instant.
func TestReservesAheadAreDecidedAtTheirInstant(t *testing.T) {
	r := newAuthRig(t, authEnforce)
	r.do(opPutToken("w", "a.*=consume"), opPutToken("v", "a.*=consume"))
	reserve := func(who string) *jobpb.Reserve {
		return &jobpb.Reserve{Topics: []string{"a.x"}, Max: 1, Principal: who}
	}
	ahead := &jobpb.Op{Kind: &jobpb.Op_AdvanceAt{AdvanceAt: &jobpb.AdvanceAt{
		AtMs: r.now + 20, Number: 7, Advance: &jobpb.Advance{Max: 1}, Reserves: []*jobpb.Reserve{reserve("w"), reserve(""), reserve("v")},
	}}}
	res := r.do(ahead, of("root", &jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: "w"}}}))
	require.Equal(t, []jobpb.Code{jobpb.Code_OK, jobpb.Code_OK}, codesOf(res))
	changes, err := r.m.TakeEffect(r.now+20, 1, 0)
	r.now += 20
	require.NoError(t, err)
	require.Len(t, changes.Effects, 1)
	require.Equal(t, []jobpb.Code{jobpb.Code_FORBIDDEN, jobpb.Code_FORBIDDEN, jobpb.Code_OK}, codesOf(changes.Effects[0].Results))
	require.Len(t, changes.Effects[0].Results[2].Jobs, 1)
}

// The runs of a schedule are the cluster's own work: they need no token, also when that of the
// schedule's author is gone.
func TestSchedulesOutliveTheirAuthor(t *testing.T) {
	r := newAuthRig(t, authEnforce)
	v := r.m.View()
	s, _, err := v.Schedule("s")
	require.NoError(t, err)
	require.NoError(t, v.Close())
	planned := r.now + 5
	require.Equal(t, jobpb.Code_OK, r.one(opFire(&jobpb.FireSchedule{Name: "s", Revision: s.State.Revision, NextMs: planned})).Code)
	r.now = planned
	res := r.one(opFire(&jobpb.FireSchedule{Name: "s", Revision: s.State.Revision, ExpectNextMs: planned, NextMs: planned + 5, Runs: []*jobpb.ScheduledRun{{PlannedMs: planned}}}))
	require.Equal(t, jobpb.Code_OK, res.Code, res.Message)
	require.Equal(t, uint32(1), res.Count)
}

// The leader's start of a run is not that of a client without a token.
func TestRunsMeetJobsOfOtherTopics(t *testing.T) {
	for _, mode := range []jobpb.AuthMode{authReport, authEnforce} {
		r := newAuthRig(t, mode)
		planned := r.now + 5
		other := opAdd(&jobpb.Add{Topic: "b.x", Id: job.RunID("s", planned, 0)})
		require.Equal(t, jobpb.Code_OK, r.one(of(job.SystemPrincipal, other)).Code)
		v := r.m.View()
		s, _, err := v.Schedule("s")
		require.NoError(t, err)
		require.NoError(t, v.Close())
		fire := &jobpb.FireSchedule{Name: "s", Revision: s.State.Revision, NextMs: planned}
		require.Equal(t, jobpb.Code_OK, r.one(opFire(fire)).Code)
		r.now = planned
		fire = &jobpb.FireSchedule{Name: "s", Revision: s.State.Revision, ExpectNextMs: planned, NextMs: planned + 5, Runs: []*jobpb.ScheduledRun{{PlannedMs: planned}}}
		res := r.one(opFire(fire))
		require.Equal(t, jobpb.Code_OK, res.Code, res.Message)
		require.Nil(t, res.Details.GetDenied(), "%s", mode)
		require.Equal(t, uint32(1), res.Count, "%s", mode)
	}
}

func codesOf(rs []*jobpb.Result) (codes []jobpb.Code) {
	for _, r := range rs {
		codes = append(codes, r.Code)
	}
	return codes
}
