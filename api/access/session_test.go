package access

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

func signIn(t *testing.T, c *Control, id string) (session string) {
	t.Helper()
	session, got, err := c.SignIn(t.Context(), secretFor(t, id).Text(), "10.0.0.1:5")
	require.NoError(t, err)
	require.Equal(t, id, got)
	return session
}

func requireNoSession(t *testing.T, c *Control, session string, about ...any) {
	t.Helper()
	token, err := c.Session(t.Context(), session, "10.0.0.1:5")
	require.Equal(t, CodeUnauthorized, job.CodeOf(err), about...)
	require.Empty(t, token)
}

// Each node opens the sessions of all, as long as it has the token.
func TestSessionsAreThoseOfTheCluster(t *testing.T) {
	state := withToken(t, enforced(), "ops", "*", "read")
	var nodes []*Control
	for range 2 {
		c := Open(Options{Source: newChanging(state)})
		defer c.Close()
		nodes = append(nodes, c)
	}
	session := signIn(t, nodes[0], "ops")
	require.NotEqual(t, session, signIn(t, nodes[0], "ops"), "none is like another")
	require.Less(t, len(session), 500)
	for _, c := range nodes {
		token, err := c.Session(t.Context(), session, "10.0.0.1:5")
		require.NoError(t, err)
		require.Equal(t, secretFor(t, "ops").Text(), token)
	}
	sealed, err := base64.RawURLEncoding.DecodeString(session[len("ops."):])
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "tarry_")
}

func TestSessionsEndWithTheirToken(t *testing.T) {
	text, next := secretFor(t, "ops"), secretFor(t, "other")
	of := func(change func(*jobpb.Token)) *auth.State {
		token := &jobpb.Token{Id: "ops", Hash: text.Hash()}
		change(token)
		return enforced().WithToken(3, auth.NewToken(token))
	}
	source := newChanging(of(func(*jobpb.Token) {}))
	c := Open(Options{Source: source})
	defer c.Close()
	session := signIn(t, c, "ops")
	for name, state := range map[string]*auth.State{
		"revoked":          enforced(),
		"ended":            of(func(t *jobpb.Token) { t.ExpiresMs = 1 }),
		"rotated":          of(func(t *jobpb.Token) { t.Hash = next.Hash() }),
		"after an overlap": of(func(t *jobpb.Token) { t.Hash, t.OldHash, t.OldUntilMs = next.Hash(), text.Hash(), 1 }),
	} {
		source.set(state)
		requireNoSession(t, c, session, name)
		_, _, err := c.SignIn(t.Context(), text.Text(), "10.0.0.1:5")
		require.EqualError(t, err, "the token is not known, was revoked or has ended", name)
	}
	source.set(of(func(t *jobpb.Token) { t.Hash, t.OldHash, t.OldUntilMs = next.Hash(), text.Hash(), now()+1e6 }))
	_, err := c.Session(t.Context(), session, "10.0.0.1:5")
	require.NoError(t, err, "both texts are accepted meanwhile")
}

func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newChanging(withToken(t, enforced(), "ops", "*", "read"))
		c := Open(Options{Source: source})
		defer c.Close()
		session := signIn(t, c, "ops")
		time.Sleep(SessionTime - time.Millisecond)
		_, err := c.Session(t.Context(), session, "10.0.0.1:5")
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		requireNoSession(t, c, session)
	})
}

// Nobody makes or changes a session without the token, also not who has read the state.
func TestSessionsAreNotForged(t *testing.T) {
	source := newChanging(withToken(t, withToken(t, enforced(), "ops", "*", "admin"), "shop", "mail", "read"))
	c := Open(Options{Source: source})
	defer c.Close()
	session := signIn(t, c, "ops")
	sealed := session[len("ops."):]
	for i := range sealed {
		for _, other := range "Ab_" {
			if byte(other) != sealed[i] && i < len(sealed)-1 { // the last character has bits to spare
				requireNoSession(t, c, "ops."+sealed[:i]+string(other)+sealed[i+1:])
			}
		}
	}
	for _, text := range []string{"", ".", "ops", "ops.", "ops.!", "ops.AAAA", "shop." + sealed, "." + sealed, "nobody." + sealed, session + "." + sealed, strings.Repeat("x", 1<<20), secretFor(t, "ops").Text()} {
		requireNoSession(t, c, text)
	}

	// The hash, which a backup has, is the key; but the token in the session is compared with it.
	hash := source.Auth().Token("ops").Hash
	for _, plain := range []string{"", "short", "\x7f\xff\xff\xff\xff\xff\xff\xff", "\x7f\xff\xff\xff\xff\xff\xff\xff" + string(hash), "\x7f\xff\xff\xff\xff\xff\xff\xff" + secretFor(t, "nobody").Text()} {
		forged := "ops." + base64.RawURLEncoding.EncodeToString(sessionSeal(hash).Seal(nil, nil, []byte(plain), []byte("ops")))
		requireNoSession(t, c, forged)
	}
}

// A token that was just made on another node signs in here, and its session is known.
func TestSessionsOfTokensThatAreNotHereYet(t *testing.T) {
	behind, ahead := enforced(), withToken(t, enforced(), "new", "*", "read")
	elsewhere := Open(Options{Source: newChanging(ahead)})
	defer elsewhere.Close()
	session := signIn(t, elsewhere, "new")

	source := newChanging(behind)
	asked := 0
	var leads error
	c := Open(Options{Source: source, Leader: func(context.Context) (uint64, error) {
		if asked++; asked == 1 || leads != nil { // the first is that of the start
			return 0, leads
		}
		go source.set(ahead)
		return ahead.Revision, nil
	}})
	defer c.Close()
	require.NoError(t, c.AwaitReady(t.Context()))
	leads = job.NotApplied("there is no leader")
	_, err := c.Session(t.Context(), session, "10.0.0.1:5")
	require.Equal(t, job.CodeNotApplied, job.CodeOf(err), "nobody knows whether it is good")
	_, _, err = c.SignIn(t.Context(), secretFor(t, "new").Text(), "10.0.0.1:5")
	require.Equal(t, job.CodeNotApplied, job.CodeOf(err))
	leads = nil
	_, err = c.Session(t.Context(), session, "10.0.0.1:5")
	require.NoError(t, err)
	before := asked
	for range 5 {
		requireNoSession(t, c, "nobody.AAAA")
	}
	require.Equal(t, before+1, asked, "the leader is asked once")
}

func TestFailedSignInsAreBounded(t *testing.T) {
	c := Open(Options{Source: newChanging(withToken(t, enforced(), "ops", "*", "read"))})
	defer c.Close()
	code := CodeUnauthorized
	for n := 0; n < 1000 && code == CodeUnauthorized; n++ {
		_, _, err := c.SignIn(t.Context(), "guess", fmt.Sprintf("[2001:db8::%x]:1", n))
		code = job.CodeOf(err)
	}
	require.Equal(t, job.CodeOverloaded, code, "addresses of one network are one")
	_, id, err := c.SignIn(t.Context(), secretFor(t, "ops").Text(), "[2001:db8::1]:1")
	require.NoError(t, err, "who has a token is not locked out by others at the address")
	require.Equal(t, "ops", id)
}

// What is no session of a token is nobody's.
func FuzzSession(f *testing.F) {
	secret, err := auth.Generate(strings.NewReader(strings.Repeat("a", 32)), "ops")
	require.NoError(f, err)
	state := enforced().WithToken(2, auth.NewToken(&jobpb.Token{Id: "ops", Hash: secret.Hash()}))
	good := newSession(secret, 2)
	f.Add(good, "")
	f.Add("ops.AAAA", "\x00\x00\x00\x00\x00\x00\x00\x02"+secret.Text())
	f.Add(".", "short")
	f.Fuzz(func(t *testing.T, session, plain string) {
		got, err := openSession(state, session, 1)
		require.True(t, session != good || err == nil)
		require.Equal(t, err == nil, got == secret)
		// With the key of the token the fuzzer gets further.
		sealed := sessionSeal(secret.Hash()).Seal(nil, nil, []byte(plain), []byte("ops"))
		got, err = openSession(state, "ops."+base64.RawURLEncoding.EncodeToString(sealed), 1)
		require.Equal(t, err == nil, got == secret)
		require.Equal(t, len(plain) > sessionEnds && plain[sessionEnds:] == secret.Text() && plain[0] < 0x80 && plain[:sessionEnds] > "\x00\x00\x00\x00\x00\x00\x00\x01", err == nil, "%q: %v", plain, err)
	})
}
