package fsm

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// opsOfScripts returns the valid operations of the scripts: of each kind, the first with
// each set of fields.
func opsOfScripts(t testing.TB) (ops []*jobpb.Op) {
	scripts, err := filepath.Glob("testdata/scripts/*.txt")
	require.NoError(t, err)
	s := &script{rig: newRig(t, Options{})}
	seen, kinds := map[string]bool{}, map[string]bool{}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		input := true // not what the lines print
		for line := range strings.Lines(string(text)) {
			switch {
			case strings.HasPrefix(line, "----"):
				input = false
			case strings.TrimSpace(line) == "":
				input = true
			}
			name, args, err := datadriven.ParseLine(line)
			if !input || err != nil || !isOp(name) {
				continue
			}
			shape := name
			for _, a := range args {
				shape += " " + a.Key
			}
			if op := s.op(command{name: name, args: args}); !seen[shape] && oplog.CheckOp(op, job.Newest()) == nil {
				seen[shape], kinds[kindName(op)] = true, true
				ops = append(ops, op)
			}
		}
	}
	require.Greater(t, len(kinds), 20, "kinds of operations in the scripts")
	return ops
}

func isOp(name string) bool {
	if other := opNames[name]; other != "" {
		name = other
	}
	return (&jobpb.Op{}).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields().ByName(protoreflect.Name(name)) != nil
}

// An operation that oplog.CheckOp accepts is valid to an empty state machine whose clock is
// not behind. So all rules that need neither state nor clock are in CheckOp. What it
// refuses changes nothing.
func FuzzCheckedOperationsAreValid(f *testing.F) {
	for _, op := range opsOfScripts(f) {
		b, err := op.MarshalVT()
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		op := new(jobpb.Op)
		if proto.Unmarshal(b, op) != nil || op.Kind == nil || op.GetRaiseVersion() != nil {
			return // a version that this release does not run ends the machine
		}
		bringNear(op)
		run, err := oplog.AppendOp(nil, op)
		if err != nil {
			return
		}
		if _, err := oplog.CheckOps(run, job.MaxVersion); err != nil {
			return
		}
		r := newRig(t, Options{})
		r.now = maxClockMS
		r.one(opPut("s", everySchedule("x")))
		before := r.digest()
		refused := oplog.CheckOp(op, job.LimitsAt(r.m.Version()))
		got := r.one(op)
		require.Equal(t, refused != nil, got.Code == jobpb.Code_INVALID, "%v: %s", refused, got.Message)
		if refused != nil {
			require.Equal(t, before, r.digest())
		}
	})
}

// bringNear reduces every instant that the clock limits to the last valid one, and
// postpones every expiry. It removes every push_url that only a topic can refuse.
func bringNear(op *jobpb.Op) {
	for _, add := range append([]*jobpb.Add{op.GetAdd(), op.GetPutSchedule().GetSchedule().GetJob()}, op.GetAtomicAdd().GetAdds()...) {
		if url := add.GetOptions().GetPushUrl(); url != "" && len(url) <= job.MaxPushURLBytes && utf8.ValidString(url) {
			add.Options.PushUrl = ""
		}
	}
	near := func(ms *int64) { *ms = min(*ms, maxClockMS) }
	for _, add := range append([]*jobpb.Add{op.GetAdd()}, op.GetAtomicAdd().GetAdds()...) {
		if add != nil {
			near(&add.DueMs)
			if add.GetOptions().GetExpiresMs() > 0 {
				add.Options.ExpiresMs = math.MaxInt64 // after any due instant
			}
		}
	}
	if u := op.GetUpdate(); u.GetExpiresMs() > 0 {
		*u.ExpiresMs = math.MaxInt64
	}
	if u := op.GetUpdate(); u.GetDueMs() != 0 {
		near(u.DueMs)
	}
	if p := op.GetPauseTopic(); p != nil {
		near(&p.UntilMs)
	}
	for _, sweep := range []*jobpb.Sweep{op.GetKickTopic().GetSweep(), op.GetPurge().GetSweep()} {
		if sweep.GetFrom() != nil {
			near(&sweep.From.StartMs)
		}
	}
}

// Every operation of the schema is applied or refused; one that was forgotten would stop
// the nodes.
func TestEveryOperationIsApplied(t *testing.T) {
	kinds := (*jobpb.Op)(nil).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range kinds.Len() {
		kind := kinds.Get(i)
		t.Run(string(kind.Name()), func(t *testing.T) {
			op := new(jobpb.Op)
			m := op.ProtoReflect()
			m.Set(kind, protoreflect.ValueOfMessage(m.NewField(kind).Message()))
			require.NotNil(t, newRig(t, Options{}).one(op))
		})
	}
}
