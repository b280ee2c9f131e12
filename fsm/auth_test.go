package fsm

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// checkAuth compares the tokens in memory, and those that are public, with the store.
func checkAuth(m *Machine) error {
	stored, err := record.ReadAuth(m.store.db)
	if err != nil {
		return err
	}
	for _, s := range []*auth.State{m.auth, m.Auth()} {
		if !sameAuth(s, stored) {
			return errNotAsStored
		}
	}
	return nil
}

var errNotAsStored = job.Invalid("tokens", "in memory are not those in the store")

func sameAuth(a, b *auth.State) bool {
	same := func(x, y *auth.Token) bool { return proto.Equal(x.Token, y.Token) }
	return a.Revision == b.Revision && a.Bootstrapped == b.Bootstrapped && proto.Equal(a.Settings, b.Settings) &&
		slices.EqualFunc(slices.Collect(a.All()), slices.Collect(b.All()), same)
}

func hashOf(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func put(t *jobpb.Token, more func(*jobpb.PutToken)) *jobpb.Op {
	p := &jobpb.PutToken{Token: t}
	if more != nil {
		more(p)
	}
	return &jobpb.Op{Kind: &jobpb.Op_PutToken{PutToken: p}, Principal: job.SystemPrincipal}
}

// first is the first token of a cluster.
func first(hash byte) *jobpb.Op {
	op := put(&jobpb.Token{Id: "root", Hash: hashOf(hash), Rules: rulesOf("*=admin")}, func(p *jobpb.PutToken) { p.Bootstrap = true })
	op.Principal = ""
	return op
}

func TestTheFirstTokenIsMadeOnce(t *testing.T) {
	r := newRig(t, Options{})
	require.False(t, r.m.Auth().Bootstrapped)
	require.Equal(t, jobpb.Code_FORBIDDEN, r.one(of("", opPutToken("early", "*=admin"))).Code)
	made := r.one(first(1))
	require.Equal(t, jobpb.Code_OK, made.Code, made.Message)
	require.Equal(t, uint64(1), made.Details.AuthRevision)
	again := r.one(first(1))
	require.Equal(t, jobpb.Code_OK, again.Code, "the reply may have been lost")
	require.True(t, again.Existing)
	require.Equal(t, uint64(1), again.Details.AuthRevision)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(first(2)).Code)
	// Also not when it is gone.
	require.Equal(t, jobpb.Code_OK, r.one(opPutToken("other", "=admin")).Code)
	require.Equal(t, jobpb.Code_OK, r.one(of("root", opDeleteToken("root"))).Code)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(first(1)).Code)
	r.reopen()
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(first(1)).Code)
	require.True(t, r.m.Auth().Bootstrapped)
	require.Equal(t, uint64(3), r.m.Auth().Revision)
}

// Who holds the disk of a node makes another first token, over the one that was lost. The
// revision lets a repeated entry do nothing.
func TestALaterFirstTokenNeedsARevision(t *testing.T) {
	r := newRig(t, Options{})
	require.Equal(t, jobpb.Code_OK, r.one(first(1)).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opSetAuth(authEnforce, "")).Code)
	again := func(hash byte, revision uint64) *jobpb.Op {
		op := first(hash)
		op.GetPutToken().IfRevision = &revision
		return op
	}
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(again(2, 0)).Code)
	require.Equal(t, jobpb.Code_OK, r.one(again(2, 1)).Code)
	require.Equal(t, hashOf(2), r.m.Auth().Token("root").Hash)
	require.Empty(t, r.m.Auth().Token("root").OldHash, "who has the lost text is out")
	require.True(t, r.one(again(2, 1)).Existing)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(again(3, 1)).Code)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(first(3)).Code)
	ends := again(4, 3)
	ends.GetPutToken().Token.ExpiresMs = r.now + 5
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(ends).Code)
	require.Equal(t, authEnforce, r.m.Auth().Mode())
}

func TestTokensAreComparedAndSet(t *testing.T) {
	r := newRig(t, Options{})
	token := func(rules string) *jobpb.Token {
		return &jobpb.Token{Id: "w", Hash: hashOf(1), Rules: rulesOf(rules)}
	}
	at := func(revision uint64) func(*jobpb.PutToken) {
		return func(p *jobpb.PutToken) { p.IfRevision = &revision }
	}
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(put(token("a=add"), at(5))).Code)
	require.Equal(t, jobpb.Code_OK, r.one(put(token("a=add"), at(0))).Code)
	created := r.m.Auth().Token("w").CreatedMs
	require.Equal(t, r.now, created)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(put(token("a=read"), at(0))).Code)
	r.now += 5
	res := r.one(put(token("a=read"), at(1)))
	require.Equal(t, uint64(2), res.Details.AuthRevision)
	require.Equal(t, created, r.m.Auth().Token("w").CreatedMs)
	require.True(t, r.m.Auth().Token("w").Grants.Allow(auth.Read, "a"))

	// Without a hash the present one stays; a new token needs one.
	require.Equal(t, jobpb.Code_OK, r.one(put(&jobpb.Token{Id: "w", Rules: rulesOf("a=push")}, nil)).Code)
	require.Equal(t, hashOf(1), r.m.Auth().Token("w").Hash)
	require.Equal(t, jobpb.Code_INVALID, r.one(put(&jobpb.Token{Id: "v"}, nil)).Code)

	remove := func(revision *uint64) *jobpb.Result {
		return r.one(&jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: "w", IfRevision: revision}}, Principal: job.SystemPrincipal})
	}
	require.Equal(t, jobpb.Code_CONDITION_FAILED, remove(new(uint64(1))).Code)
	require.Equal(t, jobpb.Code_OK, remove(new(uint64(3))).Code)
	require.Equal(t, jobpb.Code_NOT_FOUND, remove(nil).Code)
	require.Equal(t, uint64(4), r.m.Auth().Revision)
	require.Zero(t, r.m.Auth().Tokens())
}

func TestRotationOverlaps(t *testing.T) {
	r := newRig(t, Options{})
	rotate := func(hash byte, overlap int64) *jobpb.Token {
		t.Helper()
		op := put(&jobpb.Token{Id: "w", Hash: hashOf(hash)}, func(p *jobpb.PutToken) { p.OverlapMs = overlap })
		require.Equal(t, jobpb.Code_OK, r.one(op).Code)
		return r.m.Auth().Token("w").Token
	}
	require.Empty(t, rotate(1, 100).OldHash)
	now := rotate(2, 100)
	require.Equal(t, hashOf(1), now.OldHash)
	require.Equal(t, r.now+100, now.OldUntilMs)
	r.now += 7
	again := rotate(2, 100)
	require.Equal(t, now.Revision, again.Revision, "a repeated request changes nothing")
	changed := r.one(put(&jobpb.Token{Id: "w", Description: "d"}, nil))
	require.Equal(t, jobpb.Code_OK, changed.Code)
	require.Equal(t, hashOf(1), r.m.Auth().Token("w").OldHash, "it stays until its end")
	require.Empty(t, rotate(3, 0).OldHash, "without an overlap nothing is left")
}

// A node may not know of a rotation yet when it passes on what the holder of the text before
// wants. The state machine does.
func TestTheTextBeforeARotationMayDoNothing(t *testing.T) {
	r := newRig(t, Options{})
	require.Equal(t, jobpb.Code_OK, r.one(opPutToken("root", "=admin")).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opSetAuth(authEnforce, "")).Code)
	texts := make([]auth.Secret, 3)
	for i := range texts {
		var err error
		texts[i], err = auth.Generate(bytes.NewReader(bytes.Repeat([]byte{byte(i)}, 32)), "w")
		require.NoError(t, err)
	}
	rotate := func(to auth.Secret, overlap int64) {
		t.Helper()
		op := put(&jobpb.Token{Id: "w", Hash: to.Hash(), Rules: rulesOf("a=add")}, func(p *jobpb.PutToken) { p.OverlapMs = overlap })
		require.Equal(t, jobpb.Code_OK, r.one(op).Code)
	}
	adds := func(by auth.Principal) jobpb.Code {
		return r.one(of(by.Encode(), opAdd(&jobpb.Add{Topic: "a", TtrMs: 1000}))).Code
	}
	rotate(texts[0], 0)
	require.Equal(t, jobpb.Code_OK, adds(auth.SecretPrincipal(texts[0])))
	require.Equal(t, jobpb.Code_FORBIDDEN, adds(auth.SecretPrincipal(texts[1])))
	require.Equal(t, jobpb.Code_OK, adds(auth.TokenPrincipal("w")), "who has it without a text, such as by a certificate")
	rotate(texts[1], 0)
	require.Equal(t, jobpb.Code_FORBIDDEN, adds(auth.SecretPrincipal(texts[0])))
	require.Equal(t, jobpb.Code_OK, adds(auth.SecretPrincipal(texts[1])))
	rotate(texts[2], 100)
	r.now += 99
	require.Equal(t, jobpb.Code_OK, adds(auth.SecretPrincipal(texts[1])))
	r.now++
	require.Equal(t, jobpb.Code_FORBIDDEN, adds(auth.SecretPrincipal(texts[1])))
	require.Equal(t, jobpb.Code_OK, adds(auth.SecretPrincipal(texts[2])))
	r.reopen()
	require.Equal(t, jobpb.Code_FORBIDDEN, adds(auth.SecretPrincipal(texts[1])))
	require.Equal(t, jobpb.Code_OK, adds(auth.SecretPrincipal(texts[2])))
}

func TestNobodyIsLockedOut(t *testing.T) {
	r := newRig(t, Options{})
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(opSetAuth(authEnforce, "")).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opSetAuth(authReport, "a=add")).Code)
	ends := func(id string) *jobpb.Op {
		return put(&jobpb.Token{Id: id, Hash: hashOf(1), Rules: rulesOf("=admin"), ExpiresMs: r.now + 5}, nil)
	}
	require.Equal(t, jobpb.Code_OK, r.one(ends("ends")).Code)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(opSetAuth(authEnforce, "")).Code, "the only one would end")
	require.Equal(t, []jobpb.Code{jobpb.Code_OK, jobpb.Code_OK}, codesOf(r.do(opPutToken("root", "=admin"), opPutToken("w", "a=add"))))
	for _, mode := range []jobpb.AuthMode{authEnforce, authReport, authOff} {
		require.Equal(t, jobpb.Code_OK, r.one(opSetAuth(mode, "")).Code)
		before := r.digest()
		for _, op := range []*jobpb.Op{opDeleteToken("root"), opPutToken("root", "a=add"), ends("root")} {
			res := r.one(op)
			require.Equal(t, jobpb.Code_CONDITION_FAILED, res.Code, "%s", mode)
			require.Contains(t, res.Message, "the verb admin that does not expire")
		}
		require.Equal(t, before, r.digest())
	}
	require.Equal(t, []jobpb.Code{jobpb.Code_OK, jobpb.Code_OK, jobpb.Code_OK},
		codesOf(r.do(opDeleteToken("w"), opPutToken("second", "*=admin"), opDeleteToken("root"))))
}

// Who made the cluster's first token must be able to make another one when it ends.
func TestTheFirstTokenDoesNotExpire(t *testing.T) {
	r := newRig(t, Options{})
	op := first(1)
	op.GetPutToken().Token.ExpiresMs = r.now + 5
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(op).Code)
	require.False(t, r.m.Auth().Bootstrapped)
	require.Equal(t, jobpb.Code_OK, r.one(first(1)).Code)
}

// A text that was rotated away lives no longer because the clock goes back.
func TestRotatedTextsEndAlthoughTheClockGoesBack(t *testing.T) {
	r := newRig(t, Options{})
	r.now += 1000
	for _, id := range []string{"ended", "ends"} {
		require.Equal(t, jobpb.Code_OK, r.one(put(&jobpb.Token{Id: id, Hash: hashOf(1)}, nil)).Code)
	}
	rotate := func(id string, overlap int64) {
		require.Equal(t, jobpb.Code_OK, r.one(put(&jobpb.Token{Id: id, Hash: hashOf(2)}, func(p *jobpb.PutToken) { p.OverlapMs = overlap })).Code)
	}
	rotate("ended", 10)
	rotate("ends", 100)
	r.now += 20
	was, changed := r.now, r.m.AuthChanged()
	require.Equal(t, jobpb.Code_OK, r.one(opReset(was-500, 0)).Code)
	<-changed
	for range 2 {
		ended, ends := r.m.Auth().Token("ended"), r.m.Auth().Token("ends")
		require.Empty(t, ended.OldHash)
		require.Zero(t, ended.OldUntilMs)
		require.Equal(t, hashOf(1), ends.OldHash)
		require.Equal(t, was-500+80, ends.OldUntilMs)
		require.Equal(t, was-500, ends.CreatedMs)
		require.NoError(t, checkAuth(r.m))
		r.now = was - 500
		r.reopen()
	}
}

func opDeleteToken(id string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: id}}, Principal: job.SystemPrincipal}
}

func TestSettingsOfTokensAreComparedAndSet(t *testing.T) {
	r := newRig(t, Options{})
	at := func(op *jobpb.Op, revision uint64) *jobpb.Op { op.GetSetAuth().IfRevision = &revision; return op }
	require.Equal(t, jobpb.Code_OK, r.one(at(opSetAuth(authReport, "pub.*=add"), 0)).Code)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(at(opSetAuth(authOff, ""), 0)).Code)
	same := r.one(at(opSetAuth(authReport, "pub.*=add"), 1))
	require.True(t, same.Existing)
	require.Equal(t, uint64(1), same.Details.AuthRevision)
	require.Equal(t, jobpb.Code_OK, r.one(at(opSetAuth(authOff, ""), 1)).Code)
	require.Equal(t, uint64(2), r.m.Auth().Settings.Revision)
}

func TestTokensAreBounded(t *testing.T) {
	r := newRig(t, Options{limits: job.Limits{MaxTokens: 2}})
	res := r.do(opPutToken("a", ""), opPutToken("b", ""), opPutToken("c", ""), opPutToken("b", "a=add"))
	require.Equal(t, []jobpb.Code{jobpb.Code_OK, jobpb.Code_OK, jobpb.Code_TOO_MANY_TOKENS, jobpb.Code_OK}, codesOf(res))
}

// Each change closes the channel, and none is closed without one.
func TestChangesOfTokensAreTold(t *testing.T) {
	r := newRig(t, Options{})
	closed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	before := r.m.AuthChanged()
	r.one(opAdd(&jobpb.Add{Topic: "a"}))
	require.False(t, closed(before))
	r.one(opPutToken("a", "a=add"))
	require.True(t, closed(before))
	after := r.m.AuthChanged()
	r.one(opPutToken("a", "a=add"))
	require.False(t, closed(after), "nothing has changed")
	r.one(opSetAuth(authReport, ""))
	require.True(t, closed(after))
}

func TestReadsOfTokens(t *testing.T) {
	r := newRig(t, Options{})
	read := func(q *jobpb.Read) *jobpb.ReadResult {
		t.Helper()
		v := r.m.View()
		defer v.Close()
		a, err := v.Read(q)
		require.NoError(t, err)
		return a
	}
	none := read(&jobpb.Read{What: &jobpb.Read_Auth{Auth: &jobpb.Empty{}}})
	require.Zero(t, none.Auth.Revision+uint64(none.Auth.Tokens))
	require.False(t, none.Auth.Bootstrapped)
	r.do(opPutToken("b", "a=add"), opPutToken("a", ""), opPutToken("c", ""), opSetAuth(authReport, "x=add"))
	a := read(&jobpb.Read{What: &jobpb.Read_Auth{Auth: &jobpb.Empty{}}})
	require.Equal(t, uint32(3), a.Auth.Tokens)
	require.Equal(t, uint64(4), a.Auth.Revision)
	require.Equal(t, authReport, a.Auth.Settings.Mode)
	ids := func(q *jobpb.Read) (list []string) {
		for _, t := range read(q).Tokens {
			list = append(list, t.Id)
		}
		return list
	}
	require.Equal(t, []string{"a", "b", "c"}, ids(&jobpb.Read{What: &jobpb.Read_Tokens{Tokens: &jobpb.Page{Max: 9}}}))
	require.Equal(t, []string{"b"}, ids(&jobpb.Read{What: &jobpb.Read_Tokens{Tokens: &jobpb.Page{After: "a", Max: 1}}}))
	require.Equal(t, []string{"c"}, ids(&jobpb.Read{What: &jobpb.Read_Token{Token: "c"}}))
	for _, id := range []string{"", "d"} {
		a := read(&jobpb.Read{What: &jobpb.Read_Token{Token: id}})
		require.Empty(t, a.Tokens)
		require.Equal(t, uint64(4), a.Auth.Revision)
	}
}

// Tokens are in a state that is sent to another node, and equal entries make equal states, with
// replies and without.
func TestTokensAreReplicated(t *testing.T) {
	r, follower := newRig(t, Options{}), newRig(t, Options{})
	entries := [][]*jobpb.Op{
		{first(1), opPutToken("w", "a.*=add;b=read,consume"), opAdd(&jobpb.Add{Topic: "a.x"})},
		{of("root", opSetAuth(authEnforce, "pub.*=add")), of("w", opAdd(&jobpb.Add{Topic: "a.x"})), of("v", opAdd(&jobpb.Add{Topic: "a.x"}))},
		{of("", opAdd(&jobpb.Add{Topic: "pub.x"})), of("w", opDelete(bySeq(1))), of("root", opPutToken("w", "a.*=manage"))},
		{of("w", opDelete(bySeq(1))), of("w", opDelete(bySeq(2)))},
	}
	for _, ops := range entries {
		r.do(ops...)
		follower.index++
		data := encodeEntry(t, follower.now, ops...)
		_, _, err := follower.m.Apply([]Entry{{Index: follower.index, Term: 1, Data: data}}, false)
		require.NoError(t, err)
		clear(data) // what the machine keeps does not alias it
		require.Equal(t, r.digest(), follower.digest())
	}
	follower.check()
	before := r.m.Auth()
	r.reopen()
	require.True(t, sameAuth(before, r.m.Auth()))
	require.Equal(t, []string{"root", "w"}, slices.Sorted(maps.Keys(map[string]bool{"root": true, "w": r.m.Auth().Token("w") != nil})))
}
