package auth

import (
	"errors"
	"iter"
	"maps"
	"slices"

	"tarry/job"
	"tarry/job/jobpb"
)

// Token is a token of the state, with what its rules allow. It does not change.
type Token struct {
	*jobpb.Token
	Grants        *Grants
	mark, oldMark string // of its texts
}

// NewToken returns a valid token of the state.
func NewToken(t *jobpb.Token) *Token {
	return &Token{Token: t, Grants: GrantsOf(t.Rules), mark: mark(t.Hash), oldMark: mark(t.OldHash)}
}

// Expired reports whether the token has ended.
func (t *Token) Expired(nowMS int64) bool { return t.ExpiresMs != 0 && nowMS >= t.ExpiresMs }

// accepts reports whether a hash is that of the token's text, or of the one before while
// that is accepted.
func (t *Token) accepts(hash []byte, nowMS int64) bool {
	present := matches(t.Hash, hash)
	before := matches(t.OldHash, hash) && nowMS < t.OldUntilMs
	return present || before
}

// acceptsMark is accepts for what an operation in the log has of a text.
func (t *Token) acceptsMark(mark string, nowMS int64) bool {
	return mark == t.mark || mark == t.oldMark && nowMS < t.OldUntilMs
}

// State is all tokens and settings as of one revision. It does not change: what changes it
// makes another one, so any goroutine may keep and read it.
type State struct {
	// Revision grows with every change of a token or of the settings. 0: there never was one.
	Revision uint64
	// Bootstrapped reports whether there ever was a token.
	Bootstrapped bool
	Settings     *jobpb.AuthSettings // not nil
	Anonymous    *Grants
	tokens       map[string]*Token
}

// NewState returns a state. It keeps tokens, which must not change then.
func NewState(revision uint64, bootstrapped bool, settings *jobpb.AuthSettings, tokens map[string]*Token) *State {
	if settings == nil {
		settings = new(jobpb.AuthSettings)
	}
	return &State{Revision: revision, Bootstrapped: bootstrapped, Settings: settings, Anonymous: GrantsOf(settings.Anonymous), tokens: tokens}
}

// WithToken returns the state at a revision with a token made or replaced.
func (s *State) WithToken(revision uint64, t *Token) *State {
	return s.WithTokens(revision, []*Token{t})
}

// WithTokens is WithToken for several.
func (s *State) WithTokens(revision uint64, ts []*Token) *State {
	changed := *s
	changed.Revision, changed.Bootstrapped = revision, true
	changed.tokens = maps.Clone(s.tokens)
	if changed.tokens == nil {
		changed.tokens = make(map[string]*Token)
	}
	for _, t := range ts {
		changed.tokens[t.Id] = t
	}
	return &changed
}

// WithoutToken returns the state at a revision without a token.
func (s *State) WithoutToken(revision uint64, id string) *State {
	changed := *s
	changed.Revision = revision
	changed.tokens = maps.Clone(s.tokens)
	delete(changed.tokens, id)
	return &changed
}

// WithSettings returns the state at a revision with other settings.
func (s *State) WithSettings(revision uint64, settings *jobpb.AuthSettings) *State {
	changed := NewState(revision, s.Bootstrapped, settings, s.tokens)
	return changed
}

// WithTokensOf returns the state with the tokens of another one.
func (s *State) WithTokensOf(other *State) *State {
	changed := *s
	changed.tokens = other.tokens
	return &changed
}

// Mode returns what becomes of an operation that nothing allows.
func (s *State) Mode() jobpb.AuthMode { return s.Settings.Mode }

// Token returns a token; nil: there is none with this id.
func (s *State) Token(id string) *Token { return s.tokens[id] }

// Tokens returns the number of tokens.
func (s *State) Tokens() int { return len(s.tokens) }

// All returns the tokens in the order of their ids.
func (s *State) All() iter.Seq[*Token] {
	return func(yield func(*Token) bool) {
		for _, id := range slices.Sorted(maps.Keys(s.tokens)) {
			if !yield(s.tokens[id]) {
				return
			}
		}
	}
}

// HasLastingAdmin reports whether there is a token with the verb admin that does not expire.
func (s *State) HasLastingAdmin() bool {
	for _, t := range s.tokens {
		if t.ExpiresMs == 0 && t.Grants.Allow(Admin, "") {
			return true
		}
	}
	return false
}

var (
	// ErrUnknown is returned for a token that is not in the state, or not with this secret:
	// it was never made, was revoked or was rotated.
	ErrUnknown = errors.New("the token is not known")
	// ErrExpired is returned for a token that has ended.
	ErrExpired = errors.New("the token has expired")
)

// noHash is compared where there is no token, so that the time does not tell ids.
var noHash = make([]byte, 32)

// Authenticate returns the token of a secret. A reply to a client must not tell the errors
// apart.
func (s *State) Authenticate(secret Secret, nowMS int64) (*Token, error) {
	hash := secret.sum[:]
	t := s.tokens[secret.id]
	if t == nil {
		matches(noHash, hash)
		return nil, ErrUnknown
	}
	if !t.accepts(hash, nowMS) {
		return nil, ErrUnknown
	}
	if t.Expired(nowMS) {
		return nil, ErrExpired
	}
	return t, nil
}

// Denial is why something is not allowed.
type Denial uint8

// The denials.
const (
	Allowed      Denial = iota
	NoToken             // nobody may do it, and there is no token
	UnknownToken        // the token was revoked, rotated or never made
	ExpiredToken        // the token has ended
	NotGranted          // no rule of the token allows it
	OtherID             // the token adds only jobs whose ids begin with its prefix
	WrongProof          // the proof for a first token is not that of the node's disk
)

// String is the reason as metrics name it.
func (d Denial) String() string {
	return [...]string{"allowed", "no_token", "unknown_token", "expired_token", "not_granted", "other_id", "wrong_proof"}[d]
}

// GrantsOf returns what a principal may do at an instant, and else why it may do nothing.
// The grants of the system are nil with Allowed: they have no bounds.
func (s *State) GrantsOf(p Principal, nowMS int64) (*Grants, Denial) {
	if p.IsAnonymous() {
		return s.Anonymous, Allowed
	}
	if p.IsSystem() {
		return nil, Allowed
	}
	id, mark, text := p.split()
	t := s.tokens[id]
	switch {
	case t == nil, text && !t.acceptsMark(mark, nowMS):
		return nil, UnknownToken
	case t.Expired(nowMS):
		return nil, ExpiredToken
	}
	return t.Grants, Allowed
}

// Check decides whether a principal may do verbs on a topic at an instant, whatever the
// mode is. Verbs of the cluster need no topic.
func (s *State) Check(p Principal, nowMS int64, verbs Verbs, topic string) Denial {
	g, denial := s.GrantsOf(p, nowMS)
	switch {
	case denial != Allowed || p.IsSystem() || g.Allow(verbs, topic):
		return denial
	case p.IsAnonymous():
		return NoToken
	}
	return NotGranted
}

// CheckID decides whether a principal may add a job with an id; an empty one is made by the
// server.
func (s *State) CheckID(p Principal, id string) Denial {
	t := s.tokens[p.TokenID()]
	if t == nil || t.IdPrefix == "" || id == "" || len(id) >= len(t.IdPrefix) && id[:len(t.IdPrefix)] == t.IdPrefix {
		return Allowed
	}
	return OtherID
}

// Forbidden returns the error of what is denied.
func Forbidden(d Denial, verbs Verbs, topic string) error {
	why := map[Denial]string{
		NoToken:      "without a token",
		UnknownToken: "with this token, which was revoked or is not known",
		ExpiredToken: "with this token, which has expired",
		NotGranted:   "with this token",
		OtherID:      "with an id that does not begin with the id_prefix of this token",
		WrongProof:   "with this proof",
	}[d]
	if topic == "" || verbs&ofTopics == 0 {
		return job.Errorf(job.CodeForbidden, "%s is not allowed %s", verbs, why)
	}
	return job.Errorf(job.CodeForbidden, "%s on topic %q is not allowed %s", verbs, topic, why)
}
