package fsm

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// putToken makes or replaces a token. An equal one changes nothing, so a request is safe to
// repeat.
func (x *tx) putToken(op *jobpb.PutToken, r *jobpb.Result) error {
	s, id := x.m.auth, op.Token.Id
	var old *jobpb.Token
	if t := s.Token(id); t != nil {
		old = t.Token
	}
	made := proto.CloneOf(op.Token)
	if len(made.Hash) == 0 {
		made.Hash = bytes.Clone(old.GetHash())
	}
	x.rotate(made, old, op.OverlapMs)
	made.CreatedMs, made.Revision = old.GetCreatedMs(), old.GetRevision()
	switch {
	case old != nil && proto.Equal(made, old):
		// Also of the first token: its reply may have been lost.
		r.Existing = true
		return x.authResult(old.Revision, r)
	case op.Bootstrap && s.Bootstrapped && op.IfRevision == nil:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "there was a first token already; a token with the verb admin makes others")
	case op.IfRevision != nil && *op.IfRevision != old.GetRevision():
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "token %q has revision %d, not %d; 0 stands for none", id, old.GetRevision(), *op.IfRevision)
	case len(made.Hash) == 0:
		return x.refuseInvalid(job.Invalid("hash", "is missing: token %q is new", id), r)
	case old == nil && s.Tokens() >= x.limits().MaxTokens:
		return x.refuse(r, jobpb.Code_TOO_MANY_TOKENS, "there are %d tokens already, which is the limit; delete those that have expired", s.Tokens())
	}
	if old == nil {
		made.CreatedMs = x.clock()
	}
	made.Revision = s.Revision + 1
	encoded, err := record.EncodeToken(made)
	if err != nil {
		return err
	}
	kept, err := record.DecodeToken(id, encoded) // made aliases the entry
	if err != nil {
		return err
	}
	changed := s.WithToken(kept.Revision, auth.NewToken(kept))
	if locksOut(s, changed) || op.Bootstrap && !changed.HasLastingAdmin() {
		return x.refuseLockOut(r)
	}
	must(x.batch.Set(x.nameKey(record.SpaceToken, id), encoded, nil))
	return x.useAuth(changed, kept.Revision, r)
}

// rotate lets the text before be accepted for some time more, if made has another.
func (x *tx) rotate(made, old *jobpb.Token, overlapMS int64) {
	switch {
	case old == nil:
	case bytes.Equal(made.Hash, old.Hash):
		made.OldHash, made.OldUntilMs = old.OldHash, old.OldUntilMs
	case overlapMS > 0:
		made.OldHash, made.OldUntilMs = old.Hash, x.clock()+overlapMS
	}
}

// deleteToken revokes a token.
func (x *tx) deleteToken(op *jobpb.DeleteToken, r *jobpb.Result) error {
	s := x.m.auth
	t := s.Token(op.Id)
	switch {
	case t == nil:
		return x.refuse(r, jobpb.Code_NOT_FOUND, "token %.40q does not exist", op.Id)
	case op.IfRevision != nil && *op.IfRevision != t.Revision:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "token %q has revision %d, not %d", op.Id, t.Revision, *op.IfRevision)
	}
	changed := s.WithoutToken(s.Revision+1, t.Id)
	if locksOut(s, changed) {
		return x.refuseLockOut(r)
	}
	must(x.batch.Delete(x.nameKey(record.SpaceToken, t.Id), nil))
	return x.useAuth(changed, changed.Revision, r)
}

// setAuth replaces the settings for all tokens. Equal ones change nothing.
func (x *tx) setAuth(op *jobpb.SetAuth, r *jobpb.Result) error {
	s := x.m.auth
	if op.IfRevision != nil && *op.IfRevision != s.Settings.Revision {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the settings of tokens have revision %d, not %d", s.Settings.Revision, *op.IfRevision)
	}
	made := proto.CloneOf(op.Settings)
	if made.Revision = s.Settings.Revision; proto.Equal(made, s.Settings) {
		r.Existing = true
		return x.authResult(made.Revision, r)
	}
	made.Revision = s.Revision + 1
	changed := s.WithSettings(made.Revision, made)
	if locksOut(s, changed) {
		return x.refuseLockOut(r)
	}
	return x.useAuth(changed, changed.Revision, r)
}

// locksOut reports whether a change would leave nobody who may change the tokens, or only
// until a token ends. Each mode needs the verb admin for that, and there is no second first
// token.
func locksOut(before, changed *auth.State) bool {
	return !changed.HasLastingAdmin() && (before.HasLastingAdmin() || changed.Mode() == jobpb.AuthMode_AUTH_ENFORCE)
}

func (x *tx) refuseLockOut(r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_CONDITION_FAILED, "there must be a token with the verb admin that does not expire, or nobody could make tokens and set the mode; make another one first")
}

// useAuth puts a state of tokens into force, for the operations after this one.
func (x *tx) useAuth(s *auth.State, revision uint64, r *jobpb.Result) error {
	encoded, err := record.EncodeAuth(s)
	if err != nil {
		return err
	}
	must(x.batch.Set(record.KeyAuth, encoded, nil))
	kept, err := record.DecodeAuth(encoded, nil) // the settings may alias the entry
	if err != nil {
		return err
	}
	x.m.auth, x.authChanged = s.WithSettings(s.Revision, kept.Settings), true
	return x.authResult(revision, r)
}

func (x *tx) authResult(revision uint64, r *jobpb.Result) error {
	if x.replies {
		r.Details = &jobpb.Details{AuthRevision: revision}
	}
	return nil
}

// Auth returns the tokens and their settings as of the last commit.
func (m *Machine) Auth() *auth.State { return m.authState.Load() }

// AuthChanged returns a channel that is closed when Auth may return another state. To miss
// no change, call it before Auth.
func (m *Machine) AuthChanged() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.authChanged
}

// publishAuth is called with m.mu held.
func (m *Machine) publishAuth() {
	m.authState.Store(m.memory.auth)
	if m.authChanged != nil {
		close(m.authChanged)
	}
	m.authChanged = make(chan struct{})
}
