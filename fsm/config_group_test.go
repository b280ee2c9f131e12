package fsm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/configlog"
	"tarry/fsm/internal/record"
	"tarry/internal/golden"
	"tarry/internal/testseed"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// sharded is the machines of a config group and of a data group.
type sharded struct {
	t            testing.TB
	config, data *rig
}

func newSharded(t testing.TB) *sharded {
	s := &sharded{t: t, config: newRig(t, Options{}), data: newRig(t, Options{})}
	s.config.do(opSetSharding("c", configGroup(4)))
	s.data.do(opSetSharding("c", &jobpb.Sharding{Shards: 4, Group: 3}))
	return s
}

// next returns what the data group lacks next; nil: nothing.
func (s *sharded) next() *jobpb.Op {
	config, err := s.config.m.OpenConfig()
	require.NoError(s.t, err)
	defer config.Close()
	g := s.data.m.ConfigGroup()
	op, err := config.For(&g)
	require.NoError(s.t, err)
	if op == nil {
		return nil
	}
	return &jobpb.Op{Kind: &jobpb.Op_ConfigLog{ConfigLog: op}}
}

// follow gives the data group all that it lacks, and returns in how many entries.
func (s *sharded) follow() (entries int) {
	for op := s.next(); op != nil; op = s.next() {
		r := s.data.one(op)
		require.Equal(s.t, jobpb.Code_OK, r.Code, r.Message)
		entries++
	}
	s.same()
	return entries
}

// same compares the config of both.
func (s *sharded) same() {
	s.t.Helper()
	of := func(r *rig) (all []string) {
		require.NoError(s.t, record.EachConfigRecord(r.m.store.db, "", func(c *jobpb.ConfigRecord) bool {
			all = append(all, fmt.Sprintf("%q: %x", c.Key, c.Value))
			return true
		}))
		return all
	}
	require.Equal(s.t, of(s.config), of(s.data))
	require.True(s.t, sameAuth(s.config.m.Auth(), s.data.m.Auth()))
	s.data.check()
}

// heardIn applies an operation in an entry of a term, whose leader has asked at an instant; 0: it does
// not say so.
func (s *sharded) heardIn(term uint64, asked int64, op *jobpb.Op) *jobpb.Result {
	s.t.Helper()
	var h oplog.Heard
	if asked != 0 {
		at := s.config.m.ConfigPosition()
		h = oplog.Heard{AskedMS: asked, Epoch: at.Epoch, Number: at.Number}
	}
	s.data.index++
	e := Entry{Index: s.data.index, Term: term, Data: encodeHeard(s.t, s.data.now, s.data.m.Applied().ClockEpoch, h, op)}
	results, _, err := s.data.m.Apply([]Entry{e}, true)
	require.NoError(s.t, err)
	return results[0][0]
}

func (s *sharded) enforce() {
	s.t.Helper()
	for _, op := range []*jobpb.Op{first(1), opPutToken("worker", "t=add,consume"), opPutToken("any", "*=add"), opSetAuth(authEnforce, "")} {
		r := s.config.one(op)
		require.Equal(s.t, jobpb.Code_OK, r.Code, r.Message)
	}
	s.follow()
}

func TestAGroupAcceptsClientsWhileItHasHeardFromTheConfigGroup(t *testing.T) {
	s := newSharded(t)
	s.enforce()
	add := func() *jobpb.Op { return of("worker", opAdd(&jobpb.Add{Topic: "t"})) }
	start := s.data.now
	at := func(after int64, term uint64, asked int64) jobpb.Code {
		s.data.now = start + after
		return s.heardIn(term, asked, add()).Code
	}
	require.Equal(t, jobpb.Code_NOT_APPLIED, at(0, 1, 0), "it has never heard")
	require.Equal(t, jobpb.Code_OK, at(1, 1, start))
	require.Equal(t, jobpb.Code_OK, at(configlog.LeaseMS, 1, 0))
	require.Equal(t, jobpb.Code_NOT_APPLIED, at(configlog.LeaseMS+1, 1, 0))
	require.Equal(t, jobpb.Code_OK, at(configlog.LeaseMS+2, 1, start+5))
	require.Equal(t, jobpb.Code_NOT_APPLIED, at(configlog.LeaseMS+3, 2, 0), "another leader, by another clock")
	require.Equal(t, jobpb.Code_OK, at(configlog.LeaseMS+4, 2, start+10))
	require.Equal(t, jobpb.Code_OK, s.heardIn(3, 0, opAdvance(10)).Code, "the node's own operations go on")
	require.Equal(t, jobpb.Code_OK, at(configlog.LeaseMS+5, 3, start+20))
	s.data.reopen()
	require.Equal(t, jobpb.Code_OK, at(configlog.LeaseMS+6, 3, 0))
}

func TestAGroupThatLacksAChangeHasNotHeard(t *testing.T) {
	s := newSharded(t)
	s.enforce()
	require.Equal(t, jobpb.Code_OK, s.config.one(opDeleteToken("worker")).Code)
	add := of("worker", opAdd(&jobpb.Add{Topic: "t"}))
	require.Equal(t, jobpb.Code_NOT_APPLIED, s.heardIn(1, s.data.now, add).Code)
	s.follow()
	r := s.heardIn(1, s.data.now, add)
	require.Equal(t, jobpb.Code_NOT_APPLIED, r.Code, "as far as the group knows, the token may be new")
	require.Contains(t, r.Message, "new or was revoked")
	require.Equal(t, jobpb.Code_OK, s.heardIn(1, 0, of("any", opAdd(&jobpb.Add{Topic: "t"}))).Code)
	require.Equal(t, jobpb.Code_OK, s.config.one(opPutToken("reader", "t=read")).Code)
	s.follow()
	require.Equal(t, jobpb.Code_FORBIDDEN, s.heardIn(1, 0, of("reader", opAdd(&jobpb.Add{Topic: "t"}))).Code)
}

func TestAReserveAheadNeedsWhatOneAtItsInstantNeeds(t *testing.T) {
	for _, heard := range []bool{false, true} {
		s := newSharded(t)
		s.enforce()
		now := s.data.now
		require.Equal(t, jobpb.Code_OK, s.heardIn(1, now, of("worker", opAdd(&jobpb.Add{Topic: "t", DelayMs: configlog.LeaseMS + 50}))).Code)
		s.data.now = now + configlog.LeaseMS
		asked := int64(0)
		if heard {
			asked = now + 100
		}
		reserve := &jobpb.Reserve{Topics: []string{"t"}, Max: 1, Principal: "worker"}
		op := &jobpb.AdvanceAt{AtMs: now + configlog.LeaseMS + 60, Number: 7, Advance: &jobpb.Advance{Max: 10}, Reserves: []*jobpb.Reserve{reserve}}
		r := s.heardIn(1, asked, &jobpb.Op{Kind: &jobpb.Op_AdvanceAt{AdvanceAt: op}})
		require.Equal(t, jobpb.Code_OK, r.Code, r.Message)
		changes, err := s.data.m.TakeEffect(op.AtMs, 1, 0)
		require.NoError(t, err)
		require.Len(t, changes.Effects, 1)
		if heard {
			require.Len(t, changes.Effects[0].Results[0].Jobs, 1)
		} else {
			require.Equal(t, jobpb.Code_NOT_APPLIED, changes.Effects[0].Results[0].Code)
		}
	}
}

func TestAResetClockEndsWhatWasHeard(t *testing.T) {
	s := newSharded(t)
	s.enforce()
	add := of("worker", opAdd(&jobpb.Add{Topic: "t"}))
	require.Equal(t, jobpb.Code_OK, s.heardIn(1, s.data.now, add).Code)
	require.Equal(t, jobpb.Code_OK, s.heardIn(1, 0, opReset(s.data.now-500, 0)).Code)
	s.same() // no token of the group changes
	s.data.now -= 400
	require.Equal(t, jobpb.Code_NOT_APPLIED, s.heardIn(1, 0, add).Code)
	require.Equal(t, jobpb.Code_OK, s.heardIn(1, s.data.now, add).Code)
}

func TestALargeConfigComesInParts(t *testing.T) {
	s := newSharded(t)
	long := strings.Repeat("x", 150)
	set := func(i int) *jobpb.Op {
		push := &jobpb.PushTarget{Url: "https://example.com/" + long, Secret: long}
		return opSettings(&jobpb.SetTopic{Topic: fmt.Sprintf("topic-%05d", i), Settings: &jobpb.TopicSettings{MaxPending: new(uint64(i)), Push: push}})
	}
	for i := range 900 {
		require.Equal(t, jobpb.Code_OK, s.config.one(set(i)).Code)
	}
	s.enforce()
	require.Equal(t, jobpb.Code_OK, s.config.one(billing(&jobpb.Quotas{Jobs: new(uint64(9))})).Code)
	require.Equal(t, 1, s.follow(), "the changes are kept")

	replaceBy(s.config, s.config, Restoration{})
	for i := range 4000 { // more than are kept
		op := opSettings(&jobpb.SetTopic{Topic: fmt.Sprintf("more-%05d-%s", i, long), Settings: &jobpb.TopicSettings{MaxPending: new(uint64(i))}})
		require.Equal(t, jobpb.Code_OK, s.config.one(of(job.SystemPrincipal, op)).Code)
	}
	require.Equal(t, configlog.Position{Epoch: 2, Number: 4000}, s.config.m.ConfigPosition())
	first := s.next()
	require.NotEmpty(t, first.GetConfigLog().GetPart().GetNext())
	require.Equal(t, jobpb.Code_OK, s.data.one(first).Code)
	s.data.reopen()
	require.Zero(t, s.data.m.ConfigGroup().Epoch, "a part is no config")
	require.Equal(t, jobpb.Code_NOT_APPLIED, s.heardIn(1, s.data.now, of("any", opAdd(&jobpb.Add{Topic: "t"}))).Code)
	require.Equal(t, 1, s.follow())
	require.Equal(t, jobpb.Code_CONDITION_FAILED, s.data.one(first).Code)
	require.Equal(t, jobpb.Code_OK, s.heardIn(1, s.data.now, of("any", opAdd(&jobpb.Add{Topic: "t"}))).Code)
}

func TestTheConfigGroupKeepsABoundedNumberOfChanges(t *testing.T) {
	s := newSharded(t)
	s.follow()
	for i := range keptChanges + 5 {
		s.config.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{MaxPending: new(uint64(i))}}))
	}
	for range 2 {
		require.Len(t, s.config.m.changeBytes, keptChanges)
		require.EqualValues(t, 5, s.config.m.meta.ConfigLog.Kept)
		s.config.reopen()
	}
	require.NotNil(t, s.next().GetConfigLog().GetPart())
	s.follow()
}

func TestAGroupTakesTheVersionOfTheConfigGroup(t *testing.T) {
	s := newSharded(t)
	require.Equal(t, jobpb.Code_OK, s.config.one(opRaise(2)).Code)
	s.config.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{MaxPending: new(uint64(1))}}))
	s.follow()
	require.EqualValues(t, 2, s.data.m.Version())

	// Also as one change among others, and not while records are rewritten.
	s = newSharded(t)
	s.follow()
	s.config.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{MaxPending: new(uint64(1))}}))
	s.config.one(opRaise(2))
	s.data.m.meta.Migrating = []byte("t")
	r := s.data.one(s.next())
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.Code)
	require.Equal(t, configlog.Position{Epoch: 1, Number: 1}, s.data.m.ConfigGroup().Position, "what comes before it is done")
	s.data.m.meta.Migrating = nil
	s.follow()
	require.EqualValues(t, 2, s.data.m.Version())
}

// A backup of a data group has its jobs. The config that it has is as old as it is.
func TestARestoredGroupKeepsItsConfig(t *testing.T) {
	s := newSharded(t)
	s.enforce()
	s.config.one(billing(&jobpb.Quotas{Jobs: new(uint64(9))}))
	s.follow()
	s.heardIn(1, s.data.now, of("any", opAdd(&jobpb.Add{Topic: "billing.a"})))
	s.data.check()
	old := newRig(t, Options{})
	old.do(opSetSharding("c", &jobpb.Sharding{Shards: 4, Group: 3}))
	old.do(opAdvance(1))
	install(t, s.data, old)
	old.index = s.data.index

	require.Equal(t, jobpb.Code_OK, s.config.one(opDeleteToken("worker")).Code)
	s.config.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{MaxPending: new(uint64(1))}}))
	s.config.one(opDeleteNamespace("billing"))
	s.follow()
	group := s.data.m.ConfigGroup()
	replaceBy(s.data, old, Restoration{})
	for range 2 {
		require.Equal(t, group, s.data.m.ConfigGroup())
		require.Nil(t, s.next())
		s.same()
		s.data.reopen()
	}
}

func TestANewHistoryBeginsWithAnOlderState(t *testing.T) {
	s := newSharded(t)
	s.enforce()
	s.heardIn(1, s.data.now, opAdvance(1))
	require.NotZero(t, s.data.m.ConfigGroup().Heard)
	require.NoError(t, s.config.m.EnterCluster(restored(s.config, 0)))
	require.Equal(t, configlog.Position{Epoch: 2}, s.config.m.ConfigPosition())
	require.NoError(t, s.data.m.EnterCluster(restored(s.data, 0)))
	require.Zero(t, s.data.m.ConfigGroup().Heard)
	s.data.index, s.config.index = s.data.m.Applied().Index, s.config.m.Applied().Index
	require.NotNil(t, s.next().GetConfigLog().GetPart())
	s.follow()
}

// Whatever the config group decides and however the group gets it, it comes to the same config.
func TestGroupsComeToTheConfigOfTheConfigGroup(t *testing.T) {
	seed := testseed.New()
	t.Logf("TEST_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := newSharded(t)
	var late []*jobpb.Op // ConfigLogs that come again, or late
	for i := range 400 {
		name := string(rune('a' + rng.IntN(5)))
		switch rng.IntN(9) {
		case 0, 1:
			s.config.one(opSettings(&jobpb.SetTopic{Topic: name, Settings: &jobpb.TopicSettings{MaxPending: new(uint64(rng.IntN(3)))}}))
		case 2:
			s.config.one(opPutToken(name, fmt.Sprintf("%s=add;*=admin", name)))
		case 3:
			s.config.one(opDeleteToken(name))
		case 4:
			s.config.one(opSetAuth(jobpb.AuthMode(rng.IntN(3)), name+"=read"))
		case 5:
			prefix := string(rune('a' + rng.IntN(5)))
			s.config.one(opPutNamespace(&jobpb.Namespace{Name: name, TopicPrefix: prefix, Quotas: &jobpb.Quotas{Jobs: new(uint64(rng.IntN(3)))}}))
		case 6:
			s.config.one(opDeleteNamespace(name))
		case 7:
			s.data.one(&jobpb.Op{Kind: opAdd(&jobpb.Add{Topic: name}).Kind, Principal: job.SystemPrincipal})
		case 8:
			if i%7 == 0 {
				replaceBy(s.config, s.config, Restoration{ResetAuth: rng.IntN(3) == 0})
			}
		}
		if op := s.next(); op != nil && rng.IntN(4) == 0 {
			late = append(late, op)
		}
		for rng.IntN(3) == 0 && len(late) > 0 {
			s.data.one(late[rng.IntN(len(late))])
		}
		s.data.check()
		if rng.IntN(10) == 0 {
			s.follow()
		}
		if rng.IntN(40) == 0 {
			s.data.reopen()
		}
	}
	s.follow()
}

func TestTheRecordsOfTheConfigLogKeepTheirBytes(t *testing.T) {
	s := newSharded(t)
	s.config.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{MaxPending: new(uint64(7))}}))
	s.follow()
	s.heardIn(1, s.data.now, opAdvance(1))
	var written []byte
	add := func(r *rig, keys ...[]byte) {
		for _, key := range keys {
			value, closer, err := r.m.store.db.Get(key)
			require.NoError(t, err)
			written = fmt.Appendf(written, "%x=%x\n", key, value)
			require.NoError(t, closer.Close())
		}
	}
	add(s.config, record.KeyConfigLog, record.AppendSeqKey(nil, record.SpaceConfigLog, 1))
	add(s.data, record.KeyConfigGroup)
	golden.Frozen(t, "config-log-10", written)
}
