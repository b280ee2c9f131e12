package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func opCompose(c *jobpb.Compose) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_Compose{Compose: c}} }

func TestComposeDoesAllOrNothing(t *testing.T) {
	good := func(id string) *jobpb.Add { return &jobpb.Add{Id: id, Topic: "u", TtrMs: 1} }
	for name, c := range map[string]struct {
		adds []*jobpb.Add
		code jobpb.Code
		says string
	}{
		"no add":          {nil, jobpb.Code_INVALID, "takes 1 to"},
		"a bad add":       {[]*jobpb.Add{good("x"), {Topic: "u"}}, jobpb.Code_INVALID, "then[1]: ttr_ms"},
		"a taken id":      {[]*jobpb.Add{good("x"), good("taken")}, jobpb.Code_ID_CONFLICT, "then[1]: id"},
		"an id twice":     {[]*jobpb.Add{good("x"), good("x")}, jobpb.Code_INVALID, "twice"},
		"a replacement":   {[]*jobpb.Add{{Id: "x", Topic: "u", TtrMs: 1, IfExists: jobpb.IfExists_IF_EXISTS_REPLACE}}, jobpb.Code_INVALID, "conflict or keep"},
		"too many topics": {[]*jobpb.Add{good("x"), {Topic: "v", TtrMs: 1}}, jobpb.Code_TOO_MANY_TOPICS, "topic"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{maxTopics: 2})
			r.do(opAdd(&jobpb.Add{Id: "a", Topic: "t"}), opAdd(&jobpb.Add{Id: "taken", Topic: "t", DelayMs: 9}), opReserve(1, "t"))
			before := r.digest()
			res := r.one(opCompose(&jobpb.Compose{Finish: &jobpb.Finish{Ref: byID("a")}, Adds: c.adds}))
			require.Equal(t, c.code, res.Code)
			require.Contains(t, res.Message, c.says)
			require.Equal(t, before, r.digest())
		})
	}
}

func TestComposeMayGiveTheIDOfTheFinishedJobAgain(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Id: "a", Topic: "t"}), opReserve(1, "t"))
	res := r.one(opCompose(&jobpb.Compose{
		Finish: &jobpb.Finish{Ref: byID("a")},
		Adds:   []*jobpb.Add{{Id: "a", Topic: "t", TtrMs: 1, DelayMs: 5}, {Topic: "u", TtrMs: 1}},
	}))
	require.Equal(t, jobpb.Code_OK, res.Code)
	require.Len(t, res.Details.Parts, 2)
	require.Equal(t, jobpb.State_STATE_DELAYED, r.job(res.Details.Parts[0].Seq).State)
	require.EqualValues(t, 1, r.topic("t").Finished)
	require.EqualValues(t, 1, r.topic("u").Ready)
	r.check()
}
