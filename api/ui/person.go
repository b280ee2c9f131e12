package ui

import (
	"slices"

	"tarry/auth"
	"tarry/client"
	"tarry/job"
	"tarry/job/jobpb"
)

// person is who looks at the dashboard, as the API knows them. It decides what a page offers;
// the API decides what is done.
type person struct {
	ID      string // of the token; empty: nobody
	Session bool   // signed in here, and not by what the browser sends by itself
	mode    string // of the cluster: off, report or enforce
	grants  *auth.Grants
}

// whoever asks the API who the request is from.
func (q *request) whoever() person {
	var i client.Identity
	if f := q.api.get(q.r.Context(), "/v1/whoami", &i); f != nil {
		return person{mode: modeEnforce} // with a token that is not accepted
	}
	rules := make([]*jobpb.Rule, 0, len(i.Rules))
	for _, r := range i.Rules {
		if rule, err := auth.ParseRule(r.Topics, r.Verbs); err == nil {
			rules = append(rules, rule)
		}
	}
	return person{ID: i.ID, mode: i.Mode, grants: auth.GrantsOf(rules)}
}

// Modes of the cluster in which nothing is refused, and in which the rules decide.
const (
	modeOff     = "off"
	modeEnforce = "enforce"
)

// may reports whether the person may do all of verbs on a topic, or with the cluster.
func (p *person) may(verbs auth.Verbs, topic string) bool {
	return p.mode != modeEnforce || p.grants.Allow(verbs, topic)
}

// maySome is may on some topic, mayAll on all of them.
func (p *person) maySome(verbs auth.Verbs) bool {
	return p.mode != modeEnforce || p.grants.AllowOnAny(verbs)
}

func (p *person) mayAll(verbs auth.Verbs) bool {
	return p.mode != modeEnforce || p.grants.AllowOnAll(verbs)
}

// granted is may for what a page asks for by itself: who is signed in, and was not given the
// verb, is not reported for it.
func (p *person) granted(verbs auth.Verbs) bool {
	return p.mode == modeOff || p.ID == "" && p.mode != modeEnforce || p.grants.Allow(verbs, "")
}

// MustSignIn reports whether the person may do nothing without a token.
func (p *person) MustSignIn() bool {
	if p.ID != "" || p.mode != modeEnforce {
		return false
	}
	return !slices.ContainsFunc(auth.VerbNames(), func(name string) bool { return p.maySome(verbNamed(name)) })
}

// verbNamed returns the verb of a name, for templates; none for one that does not exist.
func verbNamed(name string) auth.Verbs {
	v, known := auth.ParseVerb(name)
	if !known {
		return 0
	}
	return 1 << v
}

// May reports whether the page offers what needs a verb on a topic; "" is the cluster.
func (v *view) May(verb, topic string) bool { return v.Actions && v.Person.may(verbNamed(verb), topic) }

// MaySome reports whether it does on some topic, MayAll whether on all of them.
func (v *view) MaySome(verb string) bool { return v.Actions && v.Person.maySome(verbNamed(verb)) }

// MayAll is May for what is done to all topics.
func (v *view) MayAll(verb string) bool { return v.Actions && v.Person.mayAll(verbNamed(verb)) }

// MayRead reports whether the person may read jobs of some topic.
func (v *view) MayRead() bool { return v.Person.maySome(auth.Read) }

// MayReadAll reports whether they may read those of all topics.
func (v *view) MayReadAll() bool { return v.Person.mayAll(auth.Read) }

// MayObserve reports whether the page shows how the node and the cluster are.
func (v *view) MayObserve() bool { return v.Person.granted(auth.Observe) }

// failureOf returns what an error that a client may see says.
func failureOf(err error, status int) *failure {
	return &failure{Status: status, Code: string(job.CodeOf(err)), Message: err.Error()}
}
