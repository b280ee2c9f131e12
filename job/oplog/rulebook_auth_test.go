package oplog

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// authRules are the rules of the operations on tokens. The rules of tokens themselves have
// tests of their own.
func authRules() []checked {
	all := []*jobpb.Rule{{Topics: []string{"*"}, Verbs: []jobpb.Verb{jobpb.Verb_VERB_READ, jobpb.Verb_VERB_ADMIN}}}
	token := &jobpb.Token{Id: "w", Hash: make([]byte, 32), Rules: all}
	put := func(f func(*jobpb.PutToken)) func(*jobpb.Op) { return func(op *jobpb.Op) { f(op.GetPutToken()) } }
	return []checked{
		{&jobpb.Op{Kind: &jobpb.Op_PutToken{PutToken: &jobpb.PutToken{Token: token, Bootstrap: true}}}, []rule{
			{put(func(p *jobpb.PutToken) { p.Token = nil }), "id", "is missing"},
			{put(func(p *jobpb.PutToken) { p.Token.Id = "a b" }), "id", "a-z"},
			{put(func(p *jobpb.PutToken) { p.OverlapMs = -1 }), "overlap", "is -0.001 s"},
			{put(func(p *jobpb.PutToken) { p.OverlapMs = job.MaxTokenOverlap.Milliseconds() + 1 }), "overlap", "is 2592000.001 s"},
			{put(func(p *jobpb.PutToken) { p.Token.Hash = nil }), "hash", "is missing in the first token"},
			{put(func(p *jobpb.PutToken) { p.Token.Rules = nil }), "rules", "must have the verb admin"},
			{put(func(p *jobpb.PutToken) { p.Token.Rules[0].Topics = []string{"a*"} }), "rules[0].topics", `must be ["*"]`},
			{put(func(p *jobpb.PutToken) {
				p.Token.Rules[0] = &jobpb.Rule{Topics: []string{"a*b"}, Verbs: all[0].Verbs[:1]}
			}), "rules[0].topics[0]", "only at its end"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: "w"}}}, []rule{
			{func(op *jobpb.Op) { op.GetDeleteToken().Id = "" }, "id", "has 0 bytes"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_SetAuth{SetAuth: &jobpb.SetAuth{Settings: &jobpb.AuthSettings{Mode: 2}}}}, []rule{
			{func(op *jobpb.Op) { op.GetSetAuth().Settings = nil }, "mode", "is missing"},
			{func(op *jobpb.Op) { op.GetSetAuth().Settings.Anonymous = all }, "anonymous[0].verbs", "must not have admin"},
		}},
	}
}
