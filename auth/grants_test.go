package auth

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func rule(t *testing.T, topics, verbs string) *jobpb.Rule {
	r, err := ParseRule(strings.Fields(topics), strings.Fields(verbs))
	require.NoError(t, err)
	return r
}

func TestGrants(t *testing.T) {
	g := GrantsOf([]*jobpb.Rule{
		rule(t, "billing.* mail", "add consume"),
		rule(t, "billing.invoices", "manage"),
		rule(t, "bill*", "read"),
		rule(t, "", "observe"),
	})
	for _, c := range []struct {
		topic string
		verbs Verbs
	}{
		{"billing.x", Add | Consume | Read},
		{"billing.", Add | Consume | Read},
		{"billing", Read},
		{"billing.invoices", Add | Consume | Read | Manage},
		{"billing.invoices2", Add | Consume | Read},
		{"bill", Read},
		{"bil", 0},
		{"mail", Add | Consume},
		{"mails", 0},
		{"", 0},
	} {
		require.Equal(t, c.verbs, g.On(c.topic), c.topic)
		require.True(t, g.Allow(c.verbs|Observe, c.topic), c.topic)
		require.False(t, g.Allow(c.verbs|Push, c.topic), c.topic)
		require.False(t, g.Allow(Operate, c.topic))
	}
	require.Equal(t, Read, g.OnPrefix("bill"))
	require.Zero(t, g.OnPrefix("bil"))
	require.Zero(t, g.OnPrefix("mail"), "the rule is for the topic mail alone")
	require.Equal(t, Add|Consume|Read, g.OnPrefix("billing.invoices"))
	require.True(t, g.AllowOnAny(Manage))
	require.True(t, g.AllowOnAny(Observe))
	require.False(t, g.AllowOnAny(Push))
	require.False(t, g.AllowOnAll(Read))
	require.True(t, g.AllowOnAll(Observe))
}

func TestNothingIsAllowedByDefault(t *testing.T) {
	for _, g := range []*Grants{nil, new(Grants), GrantsOf(nil), GrantsOf([]*jobpb.Rule{{Topics: []string{"*"}}})} {
		for v := range verbNames {
			if v > 0 {
				require.False(t, g.Allow(1<<v, "a"), verbNames[v])
				require.False(t, g.AllowOnAny(1<<v), verbNames[v])
			}
		}
	}
}

func TestAllTopics(t *testing.T) {
	g := GrantsOf([]*jobpb.Rule{rule(t, "*", "read admin")})
	require.True(t, g.Allow(Read|Admin, "anything"))
	require.True(t, g.AllowOnAll(Read|Admin))
	require.False(t, g.Allow(Add, "anything"))
}

func TestEveryVerbHasAName(t *testing.T) {
	require.Len(t, verbNames, len(jobpb.Verb_name))
	for v := range jobpb.Verb_name {
		if v == 0 {
			continue
		}
		name := VerbName(jobpb.Verb(v))
		require.Equal(t, "VERB_"+strings.ToUpper(name), jobpb.Verb_name[v])
		parsed, known := ParseVerb(name)
		require.True(t, known)
		require.Equal(t, jobpb.Verb(v), parsed)
		require.Equal(t, name, Verbs(1<<v).String())
		require.Equal(t, job.IsClusterVerb(parsed), ofCluster&(1<<v) != 0)
	}
	_, known := ParseVerb("")
	require.False(t, known)
	require.Equal(t, "add, admin", (Add | Admin).String())
	_, err := ParseRule([]string{"*"}, []string{"write"})
	require.ErrorContains(t, err, "add, consume, read")
}

// allowed is what Grants computes, in the simplest way.
func allowed(rules []*jobpb.Rule, verb jobpb.Verb, topic string) bool {
	for _, r := range rules {
		for _, v := range r.Verbs {
			if v != verb {
				continue
			}
			if job.IsClusterVerb(v) {
				return true
			}
			for _, p := range r.Topics {
				prefix, isPrefix := strings.CutSuffix(p, "*")
				if p == topic || isPrefix && strings.HasPrefix(topic, prefix) {
					return true
				}
			}
		}
	}
	return false
}

// Rules that are accepted allow exactly what they say.
func FuzzRules(f *testing.F) {
	f.Add("billing.* mail=add,consume\nbill*=read\n=observe", "billing.x")
	f.Add("*=admin,read", "a")
	f.Add("a=push\nb*=push\n*=push", "b")
	f.Add("=add", "")
	f.Add("a*b=add", "a")
	f.Fuzz(func(t *testing.T, text, topic string) {
		var rules []*jobpb.Rule
		for line := range strings.Lines(text) {
			topics, verbs, _ := strings.Cut(strings.TrimSpace(line), "=")
			r, err := ParseRule(strings.Fields(topics), strings.Split(verbs, ","))
			if err != nil {
				require.Equal(t, job.CodeInvalid, job.CodeOf(err))
				return
			}
			rules = append(rules, r)
		}
		if err := job.Newest().CheckRules("rules", rules); err != nil {
			require.Equal(t, job.CodeInvalid, job.CodeOf(err))
			require.Less(t, len(err.Error()), 500)
			return
		}
		g := GrantsOf(rules)
		for v := jobpb.Verb_VERB_ADD; v <= jobpb.Verb_VERB_ADMIN; v++ {
			require.Equal(t, allowed(rules, v, topic), g.Allow(1<<v, topic), "%s on %q", VerbName(v), topic)
		}
	})
}

func BenchmarkAllow(b *testing.B) {
	g := GrantsOf([]*jobpb.Rule{
		{Topics: []string{"billing.*", "mail", "orders.eu.*"}, Verbs: []jobpb.Verb{jobpb.Verb_VERB_ADD, jobpb.Verb_VERB_CONSUME}},
	})
	b.ReportAllocs()
	for b.Loop() {
		if !g.Allow(Add, "orders.eu.berlin") {
			b.Fatal("not allowed")
		}
	}
}
