package fsm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/fsm/internal/record"
	"tarry/internal/testseed"
	"tarry/job/jobpb"
)

// Random operations of random tokens, while tokens, rules and jobs change: a machine that
// enforces ends with the jobs of an open machine that was given only what the tokens allow, by
// rules that are looked up in the simplest way.
func TestEnforcingIsLeavingOutWhatIsDenied(t *testing.T) {
	seed := testseed.New()
	t.Logf("TEST_SEED=%d", seed)
	s := &authSimulation{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), rules: map[string][]*jobpb.Rule{},
		enforces: newRig(t, Options{}), open: newRig(t, Options{}),
	}
	require.Equal(t, []jobpb.Code{jobpb.Code_OK, jobpb.Code_OK}, codesOf(s.enforces.do(opPutToken("root", "*=admin"), opSetAuth(authEnforce, ""))))
	for _, r := range []*rig{s.enforces, s.open} {
		require.Equal(t, jobpb.Code_OK, r.one(opRaise(entryVersion)).Code)
	}
	denied := 0
	for range 1500 {
		s.enforces.now += s.random.Int64N(3)
		s.open.now = s.enforces.now
		if s.random.IntN(8) == 0 {
			s.changeTokens()
			continue
		}
		op, principal := s.operation(), s.token()
		got := s.enforces.one(of(principal, op))
		if s.allows(principal, op) {
			want := s.open.one(op)
			require.True(t, proto.Equal(want, got), "%s by %q: %v, want %v", op, principal, got, want)
			continue
		}
		denied++
		require.NotEqual(t, jobpb.Code_OK, got.Code, "%s by %q", op, principal)
		require.NotNil(t, got.Details.GetDenied(), "%s by %q: %v", op, principal, got)
	}
	require.Equal(t, s.jobs(s.open), s.jobs(s.enforces))
	require.NotZero(t, denied)
	require.Less(t, denied, 1500)
}

type authSimulation struct {
	t              *testing.T
	random         *rand.Rand
	enforces, open *rig
	rules          map[string][]*jobpb.Rule // by token; "" for who has none
}

func (s *authSimulation) topic() string {
	return []string{"a", "a.x", "a.y", "b", "b.x"}[s.random.IntN(5)]
}

func (s *authSimulation) token() string { return []string{"", "t1", "t2", "t3"}[s.random.IntN(4)] }

// changeTokens makes, changes or revokes a token, or changes what needs none.
func (s *authSimulation) changeTokens() {
	var rules []string
	for range 1 + s.random.IntN(3) {
		pattern := []string{"*", "a", "a*", "a.*", "b*", "b.x"}[s.random.IntN(6)]
		rules = append(rules, pattern+"="+[]string{"add", "consume", "read,manage", "add,consume,read,manage"}[s.random.IntN(4)])
	}
	text, id := strings.Join(rules, ";"), s.token()
	op := opPutToken(id, text)
	switch {
	case id == "":
		op = opSetAuth(authEnforce, text)
	case s.random.IntN(4) == 0:
		op = &jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: id}}, Principal: "root"}
		text = ""
	}
	if code := s.enforces.one(op).Code; code != jobpb.Code_NOT_FOUND {
		require.Equal(s.t, jobpb.Code_OK, code)
	}
	s.rules[id] = rulesOf(text)
	s.open.one(opReserve(1, "none")) // the clock moves on here, too
}

func (s *authSimulation) operation() *jobpb.Op {
	ref := bySeq(1 + s.random.Uint64N(40))
	if s.random.IntN(3) == 0 {
		ref = byID(fmt.Sprint("job-", s.random.IntN(5)))
	}
	switch s.random.IntN(12) {
	case 0, 1:
		return opAdd(&jobpb.Add{Topic: s.topic(), DelayMs: int64(s.random.IntN(3)) * 5})
	case 2, 3:
		return opAdd(&jobpb.Add{Topic: s.topic(), Id: fmt.Sprint("job-", s.random.IntN(5)), IfExists: jobpb.IfExists(s.random.IntN(5))})
	case 4:
		return opReserve(1, s.topic(), s.topic())
	case 5:
		return opReserveJob(ref, 0)
	case 6:
		return opFinish(ref)
	case 7:
		return opRelease(&jobpb.Release{Ref: ref})
	case 8:
		return opDelete(ref)
	case 9:
		return opMove(&jobpb.MoveJobs{Ref: ref, To: s.topic()})
	case 10:
		return opKickTopic(s.topic(), 2)
	}
	return opBury(&jobpb.Bury{Ref: ref})
}

// allows reports whether the rules of a token allow an operation.
func (s *authSimulation) allows(token string, op *jobpb.Op) bool {
	may := func(verb, topic string) bool { return mayDo(s.rules[token], verb, topic) }
	onJob := func(verb string, ref *jobpb.Ref) bool {
		j := s.find(ref)
		return j == nil || j.State > jobpb.State_STATE_DEAD || may(verb, j.Topic)
	}
	switch k := op.Kind.(type) {
	case *jobpb.Op_Add:
		old := s.find(byID(k.Add.Id))
		verb := "read" // to learn of the job
		if k.Add.IfExists >= jobpb.IfExists_IF_EXISTS_REPLACE {
			verb = "manage"
		}
		return may("add", k.Add.Topic) && (old == nil || old.Topic == k.Add.Topic || may(verb, old.Topic))
	case *jobpb.Op_Reserve:
		return may("consume", k.Reserve.Topics[0]) && may("consume", k.Reserve.Topics[1])
	case *jobpb.Op_ReserveJob:
		return onJob("consume", k.ReserveJob.Ref)
	case *jobpb.Op_Finish:
		return onJob("consume", k.Finish.Ref)
	case *jobpb.Op_Release:
		return onJob("consume", k.Release.Ref)
	case *jobpb.Op_Bury:
		return onJob("consume", k.Bury.Ref)
	case *jobpb.Op_Delete:
		return onJob("manage", k.Delete.Ref)
	case *jobpb.Op_MoveJobs:
		return may("add", k.MoveJobs.To) && onJob("manage", k.MoveJobs.Ref)
	case *jobpb.Op_KickTopic:
		return may("manage", k.KickTopic.Topic)
	}
	panic(fmt.Sprintf("no rights for %T", op.Kind))
}

func mayDo(rules []*jobpb.Rule, verb, topic string) bool {
	v, _ := auth.ParseVerb(verb)
	return slices.ContainsFunc(rules, func(r *jobpb.Rule) bool {
		return slices.Contains(r.Verbs, v) && slices.ContainsFunc(r.Topics, func(p string) bool {
			prefix, isPrefix := strings.CutSuffix(p, "*")
			return p == topic || isPrefix && strings.HasPrefix(topic, prefix)
		})
	})
}

// find returns a job of the open machine; nil: there is none.
func (s *authSimulation) find(ref *jobpb.Ref) *jobpb.Job {
	if ref.Seq != 0 {
		return s.open.job(ref.Seq)
	}
	if ref.Id == "" {
		return nil
	}
	v := s.open.m.View()
	defer v.Close()
	j, found, err := v.Job(ref.Id)
	require.NoError(s.t, err)
	if !found {
		return nil
	}
	return j
}

// jobs returns all keys of a machine except those of tokens and of the log's position.
func (s *authSimulation) jobs(r *rig) string {
	var text strings.Builder
	require.NoError(s.t, record.Scan(r.m.store.db, []byte{0}, []byte{255}, func(key, value []byte) error {
		if key[0] != record.SpaceToken && key[0] != record.SpaceMeta {
			fmt.Fprintf(&text, "%x = %x\n", key, value)
		}
		return nil
	}))
	return text.String()
}
