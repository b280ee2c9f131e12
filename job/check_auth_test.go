package job

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func TestRulesOfTokens(t *testing.T) {
	read, admin := []jobpb.Verb{jobpb.Verb_VERB_READ}, []jobpb.Verb{jobpb.Verb_VERB_ADMIN}
	both := append(append([]jobpb.Verb{}, read...), admin...)
	long := strings.Repeat("x", MaxNameBytes)
	for _, c := range []struct {
		name  string
		rule  *jobpb.Rule
		fault string // empty: none
	}{
		{"a name", &jobpb.Rule{Topics: []string{"a"}, Verbs: read}, ""},
		{"a prefix of the longest name", &jobpb.Rule{Topics: []string{long + "*"}, Verbs: read}, ""},
		{"all", &jobpb.Rule{Topics: []string{"*"}, Verbs: both}, ""},
		{"cluster verbs without topics", &jobpb.Rule{Verbs: admin}, ""},
		{"nil", nil, "rules[0]: verbs"},
		{"no verb", &jobpb.Rule{Topics: []string{"a"}}, "rules[0]: verbs"},
		{"verb 0", &jobpb.Rule{Topics: []string{"a"}, Verbs: []jobpb.Verb{0}}, "verbs are not ascending"},
		{"a verb twice", &jobpb.Rule{Topics: []string{"a"}, Verbs: append(read, read...)}, "verbs are not ascending"},
		{"an unknown verb", &jobpb.Rule{Topics: []string{"a"}, Verbs: []jobpb.Verb{99}}, "one is not known"},
		{"no topics", &jobpb.Rule{Verbs: read}, "rules[0]: topics"},
		{"mixed without topics", &jobpb.Rule{Verbs: both}, "rules[0]: topics"},
		{"admin of a topic", &jobpb.Rule{Topics: []string{"a.*"}, Verbs: admin}, "not about topics"},
		{"a star inside", &jobpb.Rule{Topics: []string{"a*b"}, Verbs: read}, "stands only at its end"},
		{"two stars", &jobpb.Rule{Topics: []string{"**"}, Verbs: read}, "stands only at its end"},
		{"an empty name", &jobpb.Rule{Topics: []string{""}, Verbs: read}, "missing or empty"},
		{"too long", &jobpb.Rule{Topics: []string{long + "x"}, Verbs: read}, "201 bytes"},
	} {
		err := CheckToken(&jobpb.Token{Id: "w", Rules: []*jobpb.Rule{c.rule}})
		if c.fault == "" {
			require.NoError(t, err, c.name)
			continue
		}
		require.Equal(t, CodeInvalid, CodeOf(err), c.name)
		require.ErrorContains(t, err, c.fault, c.name)
	}

	many := make([]*jobpb.Rule, MaxTokenRules+1)
	for i := range many {
		many[i] = &jobpb.Rule{Topics: []string{"a"}, Verbs: read}
	}
	require.NoError(t, Newest().CheckRules("rules", many[1:]))
	require.ErrorContains(t, Newest().CheckRules("rules", many), "65 items")
	for i := range many {
		many[i] = &jobpb.Rule{Topics: []string{long}, Verbs: read}
	}
	require.ErrorContains(t, Newest().CheckRules("rules", many[1:]), "bytes together")
}

func TestTopicsOfRulesAreBounded(t *testing.T) {
	rules := func(topics []string) []*jobpb.Rule {
		half := len(topics) / 2
		read := []jobpb.Verb{jobpb.Verb_VERB_READ}
		return []*jobpb.Rule{{Topics: topics[:half], Verbs: read}, {Topics: topics[half:], Verbs: read}}
	}
	check := func(topics []string) error { return Newest().CheckRules("rules", rules(topics)) }
	names := make([]string, MaxTokenPatterns+1)
	for i := range names {
		names[i] = "topic"
	}
	require.NoError(t, check(names[1:]))
	require.EqualError(t, check(names), "rules have 257 topics together; the limit is 256")
	prefixes := []string{"*", "y*"}
	for i := range MaxTokenPrefixLengths {
		prefixes = append(prefixes, strings.Repeat("x", i+1)+"*")
	}
	require.NoError(t, check(prefixes), "equal lengths count once")
	require.EqualError(t, check(append(prefixes, strings.Repeat("x", 40)+"*")), "rules have prefixes of 33 different lengths; the limit is 32")
}

func TestTokensAsTheyArePut(t *testing.T) {
	hash := make([]byte, 32)
	for _, c := range []struct {
		token *jobpb.Token
		fault string
	}{
		{&jobpb.Token{Id: "w", Hash: hash, ExpiresMs: 5, IdPrefix: "w-", Description: "ü", Limits: &jobpb.TokenLimits{RateMilli: 5}}, ""},
		{&jobpb.Token{Id: strings.Repeat("a", 32)}, ""},
		{nil, "id is missing"},
		{&jobpb.Token{}, "id has 0 bytes"},
		{&jobpb.Token{Id: strings.Repeat("a", 33)}, "id has 33 bytes"},
		{&jobpb.Token{Id: "W"}, "a-z"},
		{&jobpb.Token{Id: "."}, "a-z"},
		{&jobpb.Token{Id: "w", Hash: hash[1:]}, "hash has 31"},
		{&jobpb.Token{Id: "w", OldHash: hash}, "state machine"},
		{&jobpb.Token{Id: "w", OldUntilMs: 1}, "state machine"},
		{&jobpb.Token{Id: "w", CreatedMs: 1}, "state machine"},
		{&jobpb.Token{Id: "w", Revision: 1}, "state machine"},
		{&jobpb.Token{Id: "w", ExpiresMs: -1}, "expires_at"},
		{&jobpb.Token{Id: "w", IdPrefix: "$0-1"}, "id_prefix"},
		{&jobpb.Token{Id: "w", Description: strings.Repeat("x", 201)}, "description has 201"},
		{&jobpb.Token{Id: "w", Description: "\xff"}, "UTF-8"},
		{&jobpb.Token{Id: "w", Limits: &jobpb.TokenLimits{RateMilli: MaxRateMilli + 1}}, "limits.rate"},
		{&jobpb.Token{Id: "w", Limits: &jobpb.TokenLimits{Bytes: MaxTokenBytes + 1}}, "limits.bytes"},
	} {
		err := CheckToken(c.token)
		if c.fault == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.fault)
	}
	require.NoError(t, CheckAuthSettings(&jobpb.AuthSettings{Mode: jobpb.AuthMode_AUTH_ENFORCE}))
	require.ErrorContains(t, CheckAuthSettings(nil), "mode")
	require.ErrorContains(t, CheckAuthSettings(&jobpb.AuthSettings{Mode: 3}), "mode")
	require.ErrorContains(t, CheckAuthSettings(&jobpb.AuthSettings{Revision: 3}), "revision")
	require.ErrorContains(t, CheckAuthSettings(&jobpb.AuthSettings{Anonymous: []*jobpb.Rule{{Verbs: []jobpb.Verb{jobpb.Verb_VERB_ADMIN}}}}), "must not have admin")
}
