package access

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// The limits of a token, as metrics and errors name them.
const (
	limitRate        = "rate"
	limitConnections = "connections"
	limitWaiters     = "waiters"
	limitBytes       = "bytes"
)

// Limits holds each token to its limits on this node. Like rules they refuse under enforce, and
// are only counted in the mode that reports. What is open is counted in every mode and for every
// token, so that a limit that is set later holds at once.
//
// What ends or prolongs a reservation counts, but is not refused with the rest, so that a consumer
// can finish what it holds: see usage.
type Limits struct {
	source  Source
	limited *prometheus.CounterVec
	clock   func() time.Time

	mu sync.RWMutex
	of map[string]*usage // by the ids of tokens that there are
}

func newLimits(source Source) *Limits {
	l := &Limits{source: source, clock: time.Now, of: map[string]*usage{}, limited: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tarry_token_limited_total",
		Help: "Calls and commands that were refused, and pauses of streams, because a token had reached one of its limits on this node. In the mode report they were done.",
	}, []string{"limit"})}
	for _, name := range []string{limitRate, limitConnections, limitWaiters, limitBytes} {
		l.limited.WithLabelValues(name)
	}
	return l
}

// usageOf returns the usage of a token; nil if there is no such token.
func (l *Limits) usageOf(id string) *usage {
	if id == "" {
		return nil
	}
	l.mu.RLock()
	u := l.of[id]
	l.mu.RUnlock()
	if u != nil {
		return u
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// By the state that there is while mu is held: what forget has dropped does not come back.
	if u = l.of[id]; u == nil && l.source.Auth().Token(id) != nil {
		u = &usage{}
		l.of[id] = u
	}
	return u
}

// forget drops the usage of tokens that are gone. It looks at the state while mu is held: an older
// one may lack tokens whose usage is there already.
func (l *Limits) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.source.Auth()
	for id := range l.of {
		if s.Token(id) == nil {
			delete(l.of, id)
		}
	}
}

// limitsOf returns the limits of a token in a state; nil: it has none, or nothing is checked.
func limitsOf(s *auth.State, id string) *jobpb.TokenLimits {
	if s.Mode() == jobpb.AuthMode_AUTH_OFF {
		return nil
	}
	if t := s.Token(id); t != nil {
		return t.Limits
	}
	return nil
}

// exceeded counts what is above a limit, and returns the error to refuse it with; nil in the mode
// that only reports.
func (l *Limits) exceeded(s *auth.State, id, limit string, wait time.Duration) error {
	l.limited.WithLabelValues(limit).Inc()
	if s.Mode() != jobpb.AuthMode_AUTH_ENFORCE {
		return nil
	}
	t := s.Token(id)
	if t == nil {
		return nil // it was revoked meanwhile, which the state machine decides about
	}
	var e *job.Error
	switch of := t.Limits; limit {
	case limitRate:
		e = job.Errorf(job.CodeRateLimited, "token %s may do %g operations a second on each node (its limit rate)", id, float64(of.GetRateMilli())/1000)
	case limitBytes:
		e = job.Errorf(job.CodeRateLimited, "token %s may send and get %d bytes of bodies a second on each node (its limit bytes)", id, of.GetBytes())
	case limitConnections:
		e = job.Errorf(job.CodeRateLimited, "token %s may have %s to each node (its limit connections)", id, count(of.GetConnections(), "connection", "connections"))
	default:
		e = job.Errorf(job.CodeRateLimited, "token %s may have %s on each node (its limit waiters)", id,
			count(of.GetWaiters(), "stream or reserve that waits", "streams and reserves that wait"))
	}
	e.RetryAfter = max(wait, time.Second)
	return e
}

func count(n uint32, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
