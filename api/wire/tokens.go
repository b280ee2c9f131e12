package wire

import (
	"math"
	"time"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

type AuthRequest struct {
	Mode      Opt[string]                   `json:"mode" required:"mode"`
	Anonymous List[RuleRequest, RulesLimit] `json:"anonymous"`
}

type BootstrapRequest struct {
	Secret Opt[string] `json:"secret" required:"secret" help:"What the file bootstrap-secret in the data directory of the node has, or the nonce of the file auth-reset there."`
	ID     Opt[string] `json:"id" help:"The id of the token that is made; root unless given." limit:"token"`
}

// LimitsRequest is what a token may use on each node; a limit that is missing is none.
type LimitsRequest struct {
	Rate        Opt[float64] `json:"rate" help:"Operations a second; each job of a batch, and of a get of many, is one." limit:"rate"`
	Connections Opt[int64]   `json:"connections" help:"Open connections." limit:"uint32 from 1"`
	Waiters     Opt[int64]   `json:"waiters" help:"Streams, and reserves that wait, at once." limit:"uint32 from 1"`
	Bytes       Opt[int64]   `json:"bytes" help:"Bytes of bodies a second, of requests and of the jobs that it gets." limit:"token bytes"`
}

// limits returns what is asked for; nil: no limit.
func (q *LimitsRequest) limits() (*jobpb.TokenLimits, error) {
	var l jobpb.TokenLimits
	var err error
	if q.Rate.Set {
		if l.RateMilli, err = Thousandths(q.Rate.V); err != nil {
			return nil, job.Invalid("limits.rate", "is %g operations a second; it takes 0.001 to %d, with at most three decimals", q.Rate.V, job.MaxRateMilli/1000)
		}
	}
	if q.Connections.Set {
		if l.Connections, err = Within("limits.connections", q.Connections.V, math.MaxUint32); err != nil {
			return nil, err
		}
	}
	if q.Waiters.Set {
		if l.Waiters, err = Within("limits.waiters", q.Waiters.V, math.MaxUint32); err != nil {
			return nil, err
		}
	}
	if q.Bytes.Set {
		if err := job.Within("limits.bytes", q.Bytes.V, 1, job.MaxTokenBytes); err != nil {
			return nil, err
		}
		l.Bytes = uint64(q.Bytes.V)
	}
	if l.RateMilli == 0 && l.Connections == 0 && l.Waiters == 0 && l.Bytes == 0 {
		return nil, nil
	}
	return &l, nil
}

// RuleRequest is a rule of a token or of everybody.
type RuleRequest struct {
	Topics List[string, PatternsLimit] `json:"topics" help:"Names of topics, or prefixes with a * behind them." limit:"patterns"`
	Verbs  List[string, VerbsLimit]    `json:"verbs" help:"What is allowed on them; observe, operate and admin are about the cluster." limit:"verbs"`
}

// TokenRequest is what a token may do.
type TokenRequest struct {
	Description Opt[string]                   `json:"description"`
	Rules       List[RuleRequest, RulesLimit] `json:"rules" required:"rules"`
	IDPrefix    Opt[string]                   `json:"id_prefix" help:"The ids of the jobs that the token adds must begin with it." limit:"name"`
	ExpiresAt   Timestamp                     `json:"expires_at" help:"When the token ends: RFC 3339 text or milliseconds since 1970; never unless given."`
	Limits      Opt[LimitsRequest]            `json:"limits"`
}

type (
	RulesLimit    struct{}
	PatternsLimit struct{}
	VerbsLimit    struct{}
)

func (RulesLimit) most() int { return job.MaxTokenRules }

func (PatternsLimit) most() int { return job.MaxTokenRuleBytes }

func (VerbsLimit) most() int { return len(auth.VerbNames()) }

// RulesOf returns the rules that a request has in a field.
func RulesOf(field string, q []RuleRequest) (rules []*jobpb.Rule, err error) {
	for i := range q {
		r, err := auth.ParseRule(q[i].Topics.V, q[i].Verbs.V)
		if err != nil {
			return nil, job.InItem(field, i, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// Token returns the token that is asked for, without its hash.
func (q *TokenRequest) Token(id string, now time.Time) (*jobpb.Token, error) {
	t := &jobpb.Token{Id: id, Description: q.Description.V, IdPrefix: q.IDPrefix.V}
	var err error
	if t.Rules, err = RulesOf("rules", q.Rules.V); err != nil {
		return nil, err
	}
	if t.Limits, err = q.Limits.V.limits(); err != nil {
		return nil, err
	}
	if q.ExpiresAt.Set {
		if t.ExpiresMs, err = q.ExpiresAt.Millis("expires_at", now); err != nil {
			return nil, err
		}
	}
	return t, job.CheckToken(t)
}

type RotateRequest struct {
	Overlap Opt[float64] `json:"overlap" help:"How long the text before is accepted, too, in seconds; 3600 unless given." limit:"token overlap"`
}

type WhoAmI struct {
	Mode        string      `json:"mode"`
	ID          string      `json:"id,omitzero" help:"The id of the token; absent without one."`
	Description string      `json:"description,omitzero"`
	Rules       []Rule      `json:"rules"`
	IDPrefix    string      `json:"id_prefix,omitzero" help:"The ids of the jobs that the token adds must begin with it."`
	Limits      TokenLimits `json:"limits,omitzero"`
	ExpiresAt   Time        `json:"expires_at,omitzero" help:"When the token ends."`
}

type Token struct {
	ID          string      `json:"id" help:"The id of the token."`
	Revision    uint64      `json:"revision"`
	Description string      `json:"description,omitzero"`
	Rules       []Rule      `json:"rules"`
	IDPrefix    string      `json:"id_prefix,omitzero" help:"The ids of the jobs that the token adds must begin with it."`
	Limits      TokenLimits `json:"limits,omitzero"`
	ExpiresAt   Time        `json:"expires_at,omitzero" help:"When the token ends."`
	CreatedAt   Time        `json:"created_at"`
	OldUntil    Time        `json:"old_until,omitzero" help:"Until when the text before the last rotation is accepted, too."`
}

type TokenReply struct{ Token }

type TokenPage struct {
	Tokens []Token `json:"tokens" help:"The tokens."`
	Next   string  `json:"next,omitzero"`
}

type TokenPut struct {
	ID       string `json:"id" help:"The id of the token."`
	Revision uint64 `json:"revision"`
	Token    string `json:"token,omitzero" help:"The text of the token, which is shown this once and stored nowhere."`
}

type TokenDeleted struct {
	ID string `json:"id" help:"The id of the token."`
}

type Rule struct {
	Topics []string `json:"topics" help:"Names of topics, or prefixes with a * behind them." limit:"patterns"`
	Verbs  []string `json:"verbs" help:"What is allowed on them; observe, operate and admin are about the cluster." limit:"verbs"`
}

type TokenLimits struct {
	Rate        float64 `json:"rate,omitzero" help:"Operations a second; each job of a batch, and of a get of many, is one." limit:"rate"`
	Connections uint64  `json:"connections,omitzero" help:"Open connections." limit:"uint32 from 1"`
	Waiters     uint64  `json:"waiters,omitzero" help:"Streams, and reserves that wait, at once." limit:"uint32 from 1"`
	Bytes       uint64  `json:"bytes,omitzero" help:"Bytes of bodies a second, of requests and of the jobs that it gets." limit:"token bytes"`
}

type Auth struct {
	Mode         string `json:"mode"`
	Anonymous    []Rule `json:"anonymous"`
	Revision     uint64 `json:"revision" help:"It grows with every change of the mode or of the anonymous rules."`
	Tokens       uint64 `json:"tokens" help:"How many tokens there are."`
	Bootstrapped bool   `json:"bootstrapped" help:"Whether there ever was a token."`
}

type AuthPut struct {
	Mode     string `json:"mode"`
	Revision uint64 `json:"revision"`
}

type SecretKeys struct {
	Keys  []SecretKey `json:"keys" help:"The keys of this node, the one that seals first, and others that secrets need."`
	Plain uint64      `json:"plain" help:"Secrets that are not sealed."`
}

type SecretKey struct {
	ID     string `json:"id" help:"The id of the key, which is no secret."`
	Topics uint64 `json:"topics" help:"Topics whose secrets are sealed with it."`
	Held   bool   `json:"held" help:"Whether this node has it."`
	Seals  bool   `json:"seals,omitzero" help:"Whether this node seals with it."`
}

type Rewrapped struct {
	Rewrapped uint64 `json:"rewrapped" help:"Secrets that are sealed with the first key of the node now."`
	Unchanged uint64 `json:"unchanged" help:"Secrets that were before."`
	Failed    uint64 `json:"failed" help:"Secrets that are not."`
	Reason    string `json:"reason,omitzero" help:"Why the first of those is not."`
}
