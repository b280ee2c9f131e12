package auth

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func TestAuthenticate(t *testing.T) {
	secret, other := generate(t, "worker"), generate(t, "other")
	wrong := newSecret("worker", secret.text+"x")
	s := NewState(0, false, nil, nil).WithToken(1, NewToken(&jobpb.Token{
		Id: "worker", Hash: secret.Hash(), OldHash: wrong.Hash(), OldUntilMs: 50, ExpiresMs: 100,
	}))
	for _, c := range []struct {
		name   string
		secret Secret
		nowMS  int64
		err    error
	}{
		{"the token", secret, 99, nil},
		{"when it ends", secret, 100, ErrExpired},
		{"the one before", wrong, 49, nil},
		{"when that ends", wrong, 50, ErrUnknown},
		{"another id", other, 1, ErrUnknown},
		{"none", Secret{}, 1, ErrUnknown},
	} {
		token, err := s.Authenticate(c.secret, c.nowMS)
		if c.err != nil {
			require.ErrorIs(t, err, c.err, c.name)
			require.Nil(t, token)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, "worker", token.Id)
	}
	// A token without a hash has no holder.
	_, err := s.WithToken(2, NewToken(&jobpb.Token{Id: "worker"})).Authenticate(secret, 1)
	require.ErrorIs(t, err, ErrUnknown)
}

func TestCheck(t *testing.T) {
	s := NewState(0, false, nil, nil)
	require.Equal(t, NoToken, s.Check(Principal{}, 0, Read, "a"))
	require.Equal(t, UnknownToken, s.Check(TokenPrincipal("w"), 0, Read, "a"))
	before := s
	s = s.WithToken(1, NewToken(&jobpb.Token{Id: "w", ExpiresMs: 100, Rules: []*jobpb.Rule{rule(t, "a", "read")}, IdPrefix: "w-"}))
	s = s.WithSettings(2, &jobpb.AuthSettings{Mode: jobpb.AuthMode_AUTH_ENFORCE, Anonymous: []*jobpb.Rule{rule(t, "pub.*", "add")}})
	for _, c := range []struct {
		p     Principal
		nowMS int64
		verbs Verbs
		topic string
		want  Denial
	}{
		{TokenPrincipal("w"), 0, Read, "a", Allowed},
		{TokenPrincipal("w"), 0, Read | Add, "a", NotGranted},
		{TokenPrincipal("w"), 0, Read, "b", NotGranted},
		{TokenPrincipal("w"), 0, Add, "pub.x", NotGranted}, // a token has only its own rules
		{TokenPrincipal("w"), 100, Read, "a", ExpiredToken},
		{TokenPrincipal("v"), 0, Read, "a", UnknownToken},
		{TokenPrincipal("."), 0, Read, "a", NoToken},
		{TokenPrincipal(""), 0, Read, "a", NoToken},
		{Principal{}, 0, Add, "pub.x", Allowed},
		{Principal{}, 0, Admin, "", NoToken},
		{System(), 0, Admin | Push | Read, "a", Allowed},
	} {
		require.Equal(t, c.want, s.Check(c.p, c.nowMS, c.verbs, c.topic), "%s %s %s", c.p, c.verbs, c.topic)
	}
	require.Equal(t, Allowed, s.CheckID(TokenPrincipal("w"), "w-1"))
	require.Equal(t, Allowed, s.CheckID(TokenPrincipal("w"), ""))
	require.Equal(t, OtherID, s.CheckID(TokenPrincipal("w"), "v-1"))
	require.Equal(t, OtherID, s.CheckID(TokenPrincipal("w"), "w"))
	require.Equal(t, Allowed, s.CheckID(Principal{}, "v-1"))

	require.Nil(t, before.Token("w"), "a state does not change")
	require.Equal(t, uint64(2), s.Revision)
	require.Equal(t, 1, s.Tokens())
	gone := s.WithoutToken(3, "w")
	require.Equal(t, UnknownToken, gone.Check(TokenPrincipal("w"), 0, Read, "a"))
	require.True(t, gone.Bootstrapped)
	require.Len(t, slices.Collect(s.All()), 1)
}

func TestPrincipals(t *testing.T) {
	for _, p := range []Principal{{}, System(), TokenPrincipal("worker-1")} {
		require.Equal(t, p, DecodePrincipal(p.Encode()))
		require.Equal(t, p, FromContext(NewContext(context.Background(), p)))
	}
	require.True(t, FromContext(context.Background()).IsAnonymous())
	ctx := NewContext(context.Background(), System())
	require.True(t, FromContext(NewContext(ctx, Principal{})).IsAnonymous(), "nobody replaces the system")
	require.Empty(t, System().TokenID())
	require.Equal(t, "system, anonymous, token w", System().String()+", "+Principal{}.String()+", "+TokenPrincipal("w").String())
}

func TestForbiddenNamesVerbAndTopic(t *testing.T) {
	for d := NoToken; d <= WrongProof; d++ {
		err := Forbidden(d, Manage, "billing")
		require.Equal(t, job.CodeForbidden, job.CodeOf(err))
		require.Contains(t, err.Error(), `manage on topic "billing" is not allowed with`)
		require.NotEqual(t, "allowed", d.String())
	}
	require.EqualError(t, Forbidden(NoToken, Admin, ""), "admin is not allowed without a token")
}
