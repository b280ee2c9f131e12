package wire

import (
	"math"
	"time"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

type AuthRequest struct {
	Mode      Opt[string]                   `json:"mode"`
	Anonymous List[RuleRequest, RulesLimit] `json:"anonymous"`
}

type BootstrapRequest struct {
	Secret Opt[string] `json:"secret"`
	ID     Opt[string] `json:"id"`
}

// LimitsRequest is what a token may use on each node; a limit that is missing is none.
type LimitsRequest struct {
	Rate        Opt[float64] `json:"rate"`
	Connections Opt[int64]   `json:"connections"`
	Waiters     Opt[int64]   `json:"waiters"`
	Bytes       Opt[int64]   `json:"bytes"`
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
	Topics List[string, PatternsLimit] `json:"topics"`
	Verbs  List[string, VerbsLimit]    `json:"verbs"`
}

// TokenRequest is what a token may do.
type TokenRequest struct {
	Description Opt[string]                   `json:"description"`
	Rules       List[RuleRequest, RulesLimit] `json:"rules"`
	IDPrefix    Opt[string]                   `json:"id_prefix"`
	ExpiresAt   Timestamp                     `json:"expires_at"`
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
	Overlap Opt[float64] `json:"overlap"`
}
