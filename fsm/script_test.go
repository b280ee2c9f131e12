package fsm

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
	"tarry/fsm/view"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// TestScripts runs the scripts in testdata/scripts. Each subtest has its own machine. The
// output of its lines is compared with the text below them; the flag -rewrite writes it
// there. Each line is an entry of the log:
//
//	add topic=mail id=a   an operation, by its name in the schema or a short one (opNames),
//	                      with fields by their names, without _ms, however deep they are
//	then, run, header, voter
//	                      adds to a list of the operation above
//	tick 30s              the clock moves on, and an Advance does what is due
//	wait 30s              the clock moves on
//	count reserve ...     the number of jobs instead of the jobs
//	print job=a           what readers see; also jobs, header, topic, totals, schedule, clock,
//	                      and with leader what a new leader reads
//	reopen, snapshot      the machine restarts; it sends its state to another and back
//	entry                 first: the lines below it are one entry
//	repeat 16             first: the lines below it that often; with last, only the last
//	                      output is shown
//	epoch 1               the clock's epoch in the entries that follow
//	new topics=2          a new machine, with lower limits
//	config put_token ...  the line is for the machine of the config group
//	follow                the machine, a data group, gets what it lacks of the config
//	heard, heard @3s      the next entry says that its leader asked the config group, and when
//	term 2                the term of the entries that follow
//
// A refusal also prints whether it changed the state; few do.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		scripts := map[*testing.T]*script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := scripts[t]
			if s == nil || d.Cmd == "new" {
				s = newScript(t, d)
				scripts[t] = s
			}
			return s.run(d)
		})
	})
}

// script is one subtest: a machine and the log that it applied.
type script struct {
	*rig
	log   []Entry
	epoch uint64
	term  uint64
	heard oplog.Heard // of the next entry
	other *script     // the config group; nil: there is none yet
	pos   string      // of the directive, for failures
}

func newScript(t *testing.T, d *datadriven.TestData) *script {
	var o Options
	if d.Cmd == "new" {
		for _, a := range d.CmdArgs {
			var n int
			a.Scan(t, 0, &n)
			switch a.Key {
			case "topics":
				o.limits.MaxTopics = n
			case "targets":
				o.limits.MaxPushTargets = n
			case "retained":
				o.limits.MaxRetained = uint64(n)
			case "window":
				o.bounds.windowCap = n
			case "shard":
				o.Shard = uint32(n)
			default:
				d.Fatalf(t, "new has no option %s", a.Key)
			}
		}
	}
	s := &script{rig: newRig(t, o), term: 1}
	s.apply() // the clock
	t.Cleanup(func() { s.replay(o) })
	return s
}

// replay applies the log to a second machine in other batches, with restarts and other
// windows: it must reach the same state.
func (s *script) replay(o Options) {
	o.bounds.windowCap, o.bounds.windowBudget = 2, 100
	other := newRig(s.t, o)
	rng := rand.New(rand.NewPCG(uint64(len(s.log)), 0))
	for rest := s.log; len(rest) > 0; {
		n := min(len(rest), 1+rng.IntN(6))
		_, _, err := other.m.Apply(rest[:n], rng.IntN(2) == 0)
		require.NoError(s.t, err)
		if rest = rest[n:]; rng.IntN(8) == 0 {
			other.reopen()
		}
	}
	require.Equal(s.t, s.digest(), other.digest(), "the same log in other batches")
}

// command is a line of a script, with the lines that belong to it.
type command struct {
	name  string
	args  []datadriven.CmdArg
	parts []command
}

func (c command) has(key string) bool {
	return slices.ContainsFunc(c.args, func(a datadriven.CmdArg) bool { return a.Key == key })
}

// partOf is the list of an operation that a line is added to.
var partOf = map[string]string{"then": "adds", "run": "runs", "header": "headers", "voter": "voters"}

// run runs the lines of a directive, each as an entry, and returns their output.
func (s *script) run(d *datadriven.TestData) string {
	s.pos = d.Pos
	lines := []command{{name: d.Cmd, args: d.CmdArgs}}
	for line := range strings.Lines(d.Input) {
		name, args, err := datadriven.ParseLine(line)
		require.NoError(s.t, err, s.pos)
		if c := (command{name: name, args: args}); partOf[name] != "" {
			last := &lines[len(lines)-1]
			last.parts = append(last.parts, c)
		} else {
			lines = append(lines, c)
		}
	}
	var out strings.Builder
	switch first := lines[0]; first.name {
	case "new":
		return ""
	case "entry":
		ops := make([]*jobpb.Op, len(lines)-1)
		for i, c := range lines[1:] {
			ops[i] = s.op(c)
		}
		for _, r := range s.apply(ops...) {
			fmt.Fprintln(&out, resultText(r))
		}
	case "repeat":
		n, err := parseUint(first.args[0].Key)
		require.NoError(s.t, err, s.pos)
		for range n {
			if len(first.args) > 1 { // only the last round is shown
				out.Reset()
			}
			for _, c := range lines[1:] {
				fmt.Fprintln(&out, s.do1(c))
			}
		}
	default:
		for _, c := range lines {
			fmt.Fprintln(&out, s.do1(c))
		}
	}
	s.check()
	return out.String()
}

// do1 runs one line and returns its output.
func (s *script) do1(c command) string {
	switch c.name {
	case "tick":
		s.now = s.until(c)
		r := s.apply(opAdvance(1000))[0]
		return strings.Replace(resultText(r), "ok", instantText(s.now), 1)
	case "wait":
		s.now = s.until(c)
		s.apply()
		return instantText(s.now)
	case "epoch":
		n, err := parseUint(c.args[0].Key)
		require.NoError(s.t, err, s.pos)
		s.epoch = n
		return "ok"
	case "count":
		lines := strings.Split(s.do1(command{name: c.args[0].Key, args: c.args[1:]}), "\n")
		return fmt.Sprintf("%s %d", lines[0], len(lines)-1)
	case "reopen":
		s.reopen()
		return "reopened"
	case "snapshot":
		o := s.o
		o.FS = nil
		other := newRig(s.t, o)
		install(s.t, s.rig, other)
		require.Equal(s.t, s.digest(), other.digest(), s.pos)
		install(s.t, other, s.rig)
		return "installed"
	case "print":
		return s.print(c)
	case "config", "follow", "heard", "term":
		return s.withConfig(c)
	}
	op, before := s.op(c), s.m.View()
	defer before.Close()
	r := s.apply(op)[0]
	text := resultText(r)
	if r.Code != jobpb.Code_OK {
		digest, err := check.Digest(before, nil)
		require.NoError(s.t, err)
		if s.digest() != digest {
			text += "\n  the state has changed"
		}
	}
	return text
}

// apply applies operations as one entry.
func (s *script) apply(ops ...*jobpb.Op) []*jobpb.Result {
	s.index++
	e := Entry{Index: s.index, Term: s.term, Data: encodeHeard(s.t, s.now, s.epoch, s.heard, ops...)}
	s.heard = oplog.Heard{}
	s.log = append(s.log, e)
	results, _, err := s.m.Apply([]Entry{e}, true)
	require.NoError(s.t, err, s.pos)
	return results[0]
}

// op returns the operation of a line: its name is a kind of Op, its arguments are fields.
func (s *script) op(c command) *jobpb.Op {
	op, m := newOp(s.t, c.name)
	switch k := op.Kind.(type) {
	case *jobpb.Op_Add:
		k.Add.TtrMs = record.MinuteMS
	case *jobpb.Op_Reserve:
		k.Reserve.Max = 1
	case *jobpb.Op_Advance:
		k.Advance.Max = 1000
	case *jobpb.Op_PutSchedule:
		if !c.has("paused") {
			k.PutSchedule.Schedule = everySchedule("x")
		}
	case *jobpb.Op_FireSchedule: // what the leader saw
		if sch := s.schedule(c.args[0].Vals[0]); sch != nil && !c.has("now") {
			k.FireSchedule.Revision, k.FireSchedule.ExpectNextMs = sch.State.Revision, sch.State.NextMs
		}
	}
	s.setAll(m, c)
	for _, p := range c.parts {
		list, fd := findField(m, partOf[p.name])
		require.NotNil(s.t, fd, "%s: %s takes no %s", s.pos, c.name, p.name)
		if !fd.IsList() { // the headers of an update
			list, fd = findField(list.Mutable(fd).Message(), "list")
		}
		part := list.Mutable(fd).List().AppendMutable().Message()
		if a, ok := part.Interface().(*jobpb.Add); ok {
			a.TtrMs = record.MinuteMS
		}
		s.setAll(part, p)
	}
	return op
}

// print returns what readers, or the leader, see.
func (s *script) print(c command) string {
	v := s.m.View()
	defer v.Close()
	require.Len(s.t, c.args, 1, s.pos)
	what, of := c.args[0].Key, strings.Join(c.args[0].Vals, "")
	switch what {
	case "job":
		j, found, err := v.Job(of)
		if !found && err == nil {
			seq, _ := parseUint(of)
			j, found, err = v.JobBySeq(seq)
		}
		require.NoError(s.t, err)
		if !found {
			return "none"
		}
		return orNone(messageText(j.ProtoReflect()))
	case "jobs":
		page, _ := s.listed(&jobpb.JobQuery{Topic: of, Max: 1000})
		return jobsText(page.Jobs)
	case "header": // name, value
		q := &jobpb.JobQuery{ByHeader: true, Max: 1000, Filter: &jobpb.Filter{Headers: []*jobpb.Header{{Name: c.args[0].Vals[0], Value: c.args[0].Vals[1]}}}}
		page, err := v.Jobs(q)
		if err != nil {
			return err.Error()
		}
		if page.Incomplete {
			return "incomplete\n" + jobsText(page.Jobs)
		}
		return jobsText(page.Jobs)
	case "topic":
		t, err := v.Topic(of)
		require.NoError(s.t, err)
		return orNone(messageText(t.ProtoReflect()))
	case "totals":
		t, err := v.Totals()
		require.NoError(s.t, err)
		return orNone(messageText(t.ProtoReflect()))
	case "schedule":
		if sch := s.schedule(of); sch != nil {
			return messageText(sch.State.ProtoReflect())
		}
		return "none"
	case "leader":
		return s.leaderText()
	case "clock":
		return instantText(s.m.Applied().ClockMS)
	case "cluster":
		return s.m.ClusterID()
	case "sharding":
		text := fmt.Sprintf("group %d of %d shards", s.m.Group(), s.m.Shards())
		for _, v := range s.m.FirstVoters() {
			text += fmt.Sprintf(", %s at %s", v.ServerId, v.Address)
		}
		return text
	case "config":
		return s.configText()
	case "namespaces":
		return s.namespacesText(v)
	case "removed_nodes":
		return fmt.Sprint(slices.Sorted(maps.Keys(s.m.RemovedNodes())))
	case "removed":
		return fmt.Sprint(s.m.Forgotten(of))
	}
	return s.read(v, what, c.args[0].Vals)
}

// read does a read that has no words of its own above: a field of jobpb.Read, with the
// values of of in its first fields if it is a message.
func (s *script) read(v *view.View, what string, of []string) string {
	read := new(jobpb.Read)
	m := read.ProtoReflect()
	fd := m.Descriptor().Fields().ByName(protoreflect.Name(what))
	require.NotNil(s.t, fd, "%s: nothing to print: %s", s.pos, what)
	if fd.Message() == nil {
		m.Set(fd, s.value(fd, strings.Join(of, "")))
	} else {
		in := m.Mutable(fd).Message()
		for i := range in.Descriptor().Fields().Len() {
			switch field := in.Descriptor().Fields().Get(i); {
			case i < len(of):
				in.Set(field, s.value(field, of[i]))
			case field.Name() == "now_ms":
				in.Set(field, protoreflect.ValueOfInt64(s.now))
			}
		}
	}
	a, err := v.Read(read)
	if err != nil {
		return err.Error()
	}
	var given string
	a.ProtoReflect().Range(func(_ protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		given = messageText(v.Message())
		return true
	})
	return orNone(given)
}

// leaderText returns what a new leader reads from the state: the topics, and when to
// propose the next Advance and the next run of a schedule.
func (s *script) leaderText() string {
	text := "advance=" + instantText(s.m.NextDue())
	if next := s.m.NextSchedule(); next != 0 {
		text += " schedules=" + instantText(next)
	}
	for _, c := range s.m.TopicChanges() {
		text += fmt.Sprintf("\n  %s ready=%d next=%s", c.Name, c.Ready, instantText(c.NextDue))
	}
	return text
}

func jobsText(jobs []*jobpb.Job) string {
	var lines []string
	for _, j := range jobs {
		line := fmt.Sprintf("%d %s", j.Seq, enumText(j.State))
		if !job.IsServerID(j.Id) {
			line += " " + j.Id
		}
		lines = append(lines, line+" due="+instantText(j.DueMs))
	}
	return orNone(strings.Join(lines, "\n"))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// until returns the instant of a line's argument: 30s from now, @30s, or next, when the
// next Advance is due.
func (s *script) until(c command) int64 {
	require.Len(s.t, c.args, 1, s.pos)
	text := c.args[0].Key
	if text == "next" {
		return s.m.NextDue()
	}
	if !strings.HasPrefix(text, "@") {
		text = "+" + text
	}
	ms, err := s.millis(text)
	require.NoError(s.t, err, s.pos)
	return ms
}
