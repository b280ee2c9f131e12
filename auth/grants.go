package auth

import (
	"slices"
	"strings"

	"tarry/job"
	"tarry/job/jobpb"
)

// Verbs is a set of verbs.
type Verbs = job.Verbs

// The verbs. Observe, Operate and Admin are about the cluster, the others about a topic.
const (
	Add     = job.VerbAdd
	Consume = job.VerbConsume
	Read    = job.VerbRead
	Manage  = job.VerbManage
	Push    = job.VerbPush
	Observe = job.VerbObserve
	Operate = job.VerbOperate
	Admin   = job.VerbAdmin

	ofTopics  = Add | Consume | Read | Manage | Push
	ofCluster = Observe | Operate | Admin
)

var verbNames = job.VerbNames[:]

// VerbNames are the names of all verbs.
func VerbNames() []string { return slices.Clone(verbNames[1:]) }

// ParseVerb returns the verb of a name; false if there is none.
func ParseVerb(name string) (jobpb.Verb, bool) {
	i := slices.Index(verbNames, name)
	return jobpb.Verb(max(i, 0)), i > 0
}

// VerbName returns the name of a verb.
func VerbName(v jobpb.Verb) string {
	if v < 1 || int(v) >= len(verbNames) {
		return "unknown"
	}
	return verbNames[v]
}

// ParseRule makes a rule of names as clients give them, checked.
func ParseRule(topics, verbs []string) (*jobpb.Rule, error) {
	r := &jobpb.Rule{Topics: topics}
	for _, name := range verbs {
		v, known := ParseVerb(name)
		if !known {
			return nil, job.Invalid("verbs", "has %.40q; the verbs are %s", name, strings.Join(VerbNames(), ", "))
		}
		r.Verbs = append(r.Verbs, v)
	}
	slices.Sort(r.Verbs)
	r.Verbs = slices.Compact(r.Verbs)
	return r, nil
}

// Grants is what rules allow, for quick decisions. It does not change. The zero value
// allows nothing.
type Grants struct {
	cluster  Verbs // of those of the cluster
	all      Verbs // on all topics
	exact    map[string]Verbs
	prefixes map[string]Verbs
	lengths  []int // of the prefixes, each once
}

// GrantsOf returns what valid rules allow. Nothing is allowed that no rule names.
func GrantsOf(rules []*jobpb.Rule) *Grants {
	g := new(Grants)
	for _, r := range rules {
		verbs := Verbs(0)
		for _, v := range r.Verbs {
			if v > 0 && int(v) < len(verbNames) {
				verbs |= 1 << v
			}
		}
		g.cluster |= verbs & ofCluster
		for _, pattern := range r.Topics {
			g.add(pattern, verbs&ofTopics)
		}
	}
	return g
}

func (g *Grants) add(pattern string, verbs Verbs) {
	if verbs == 0 {
		return
	}
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	switch {
	case !isPrefix:
		if g.exact == nil {
			g.exact = make(map[string]Verbs)
		}
		g.exact[pattern] |= verbs
	case prefix == "":
		g.all |= verbs
	default:
		if g.prefixes == nil {
			g.prefixes = make(map[string]Verbs)
		}
		g.prefixes[prefix] |= verbs
		if !slices.Contains(g.lengths, len(prefix)) {
			g.lengths = append(g.lengths, len(prefix))
		}
	}
}

// On returns the verbs that are allowed on a topic.
func (g *Grants) On(topic string) Verbs {
	if g == nil {
		return 0
	}
	return g.OnPrefix(topic) | g.exact[topic]
}

// OnPrefix returns the verbs that are allowed on every topic that begins with prefix.
func (g *Grants) OnPrefix(prefix string) Verbs {
	if g == nil {
		return 0
	}
	verbs := g.all
	for _, n := range g.lengths {
		if n <= len(prefix) {
			verbs |= g.prefixes[prefix[:n]]
		}
	}
	return verbs
}

// Missing returns which of verbs are not allowed on a topic, or on the cluster.
func (g *Grants) Missing(verbs Verbs, topic string) Verbs {
	if g.Allow(verbs, topic) {
		return 0
	}
	if g == nil {
		return verbs
	}
	return verbs &^ (g.cluster | g.On(topic))
}

// Allow reports whether all of verbs are allowed: those of the cluster, and those of topics
// on this topic.
func (g *Grants) Allow(verbs Verbs, topic string) bool {
	if g == nil {
		return verbs == 0
	}
	if verbs&ofCluster&^g.cluster != 0 {
		return false
	}
	wanted := verbs & ofTopics
	return wanted == 0 || wanted&^g.all == 0 || wanted&^g.On(topic) == 0
}

// AllowOnAny reports whether a verb is allowed on some topic, or on the cluster.
func (g *Grants) AllowOnAny(verb Verbs) bool {
	if g == nil {
		return false
	}
	if (g.all|g.cluster)&verb != 0 {
		return true
	}
	for _, m := range []map[string]Verbs{g.exact, g.prefixes} {
		for _, verbs := range m {
			if verbs&verb != 0 {
				return true
			}
		}
	}
	return false
}

// AllowOnAll reports whether verbs are allowed on every topic.
func (g *Grants) AllowOnAll(verbs Verbs) bool { return g != nil && verbs&^(g.all|g.cluster) == 0 }
