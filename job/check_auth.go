package job

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"tarry/job/jobpb"
)

// The rules of tokens and of what they allow; see oplog.CheckOp. Package auth decides by them.

// tokenHashBytes is the size of SHA-256.
const tokenHashBytes = 32

// CheckTokenID checks the id of a token: 1 to MaxTokenIDBytes of a-z, 0-9 and -. It has no
// underscore, which ends it in the text of a token.
func (l *Limits) CheckTokenID(field, id string) error {
	return CheckLabel(field, id, l.MaxTokenIDBytes)
}

// CheckLabel checks that a name has 1 to most bytes of a-z, 0-9 and -.
func CheckLabel(field, name string, most int) error {
	if name == "" || len(name) > most {
		return Invalid(field, "has %d bytes; it takes 1 to %d", len(name), most)
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return Invalid(field, "is %.40q; it takes only the characters a-z, 0-9 and -", name)
		}
	}
	return nil
}

// CheckToken checks a token as it is put: without what the state machine fills in.
func (l *Limits) CheckToken(t *jobpb.Token) error {
	if t == nil {
		return Invalid("id", "is missing")
	}
	if err := l.CheckTokenID("id", t.Id); err != nil {
		return err
	}
	switch n := len(t.Hash); {
	case n != 0 && n != tokenHashBytes:
		return Invalid("hash", "has %d bytes; it takes %d, or none to keep the present one", n, tokenHashBytes)
	case len(t.OldHash) != 0 || t.OldUntilMs != 0 || t.CreatedMs != 0 || t.Revision != 0:
		return Invalid("token", "has fields that only the state machine sets")
	case t.ExpiresMs < 0 || t.ExpiresMs > MaxInstantMS:
		return Invalid("expires_at", "is before 1970 or after the year 9999")
	case len(t.Description) > l.MaxDescriptionBytes:
		return Invalid("description", "has %d bytes; the limit is %d", len(t.Description), l.MaxDescriptionBytes)
	case !utf8.ValidString(t.Description):
		return Invalid("description", "is not valid UTF-8")
	}
	if t.IdPrefix != "" {
		if err := l.CheckID("id_prefix", t.IdPrefix); err != nil {
			return err
		}
	}
	if rate := t.Limits.GetRateMilli(); rate > l.MaxRateMilli {
		return Invalid("limits.rate", "is above %d a second", l.MaxRateMilli/1000)
	}
	if bytes := t.Limits.GetBytes(); bytes > l.MaxTokenBytes {
		return Invalid("limits.bytes", "is above %d a second", l.MaxTokenBytes)
	}
	return l.CheckRules("rules", t.Rules)
}

// CheckRules checks the rules of a token, which errors name by field.
func (l *Limits) CheckRules(field string, rules []*jobpb.Rule) error {
	if len(rules) > l.MaxTokenRules {
		return Invalid(field, "has %d items; the limit is %d", len(rules), l.MaxTokenRules)
	}
	size, patterns := 0, 0
	lengths := map[int]bool{} // of the prefixes
	for i, r := range rules {
		if err := l.checkRule(r); err != nil {
			return InItem(field, i, err)
		}
		size += r.SizeVT()
		patterns += len(r.Topics)
		for _, t := range r.Topics {
			if prefix, isPrefix := strings.CutSuffix(t, "*"); isPrefix && prefix != "" {
				lengths[len(prefix)] = true
			}
		}
	}
	switch {
	case size > l.MaxTokenRuleBytes:
		return Invalid(field, "take %d bytes together; the limit is %d", size, l.MaxTokenRuleBytes)
	case patterns > l.MaxTokenPatterns:
		return Invalid(field, "have %d topics together; the limit is %d", patterns, l.MaxTokenPatterns)
	case len(lengths) > l.MaxTokenPrefixLengths:
		return Invalid(field, "have prefixes of %d different lengths; the limit is %d", len(lengths), l.MaxTokenPrefixLengths)
	}
	return nil
}

func (l *Limits) checkRule(r *jobpb.Rule) error {
	if r == nil || len(r.Verbs) == 0 {
		return Invalid("verbs", "is missing or empty")
	}
	cluster, last := false, jobpb.Verb_VERB_NONE
	for _, v := range r.Verbs {
		if v <= last || v > jobpb.Verb_VERB_ADMIN {
			return Invalid("verbs", "are not ascending, or one is not known")
		}
		cluster = cluster || IsClusterVerb(v)
		last = v
	}
	switch {
	case cluster && len(r.Topics) == 0 && IsClusterVerb(r.Verbs[0]):
		return nil
	case cluster && !slices.Equal(r.Topics, []string{"*"}):
		// Otherwise a reader would take them as limited to these topics.
		return Invalid("topics", `must be ["*"]: observe, operate and admin are not about topics; give them a rule of their own`)
	case len(r.Topics) == 0:
		return Invalid("topics", `is missing or empty; ["*"] is all topics`)
	}
	for i, t := range r.Topics {
		if err := l.checkPattern(t); err != nil {
			return InItem("topics", i, asError(err).In("")) // the item, and nothing in it
		}
	}
	return nil
}

// checkPattern checks a topic's name, or a prefix with a * behind it.
func (l *Limits) checkPattern(p string) error {
	prefix, isPrefix := strings.CutSuffix(p, "*")
	switch {
	case isPrefix && prefix == "":
		return nil
	case strings.Contains(prefix, "*"):
		return Invalid("pattern", "is %.40q; a * stands only at its end", p)
	}
	return l.CheckTopic("pattern", prefix)
}

// IsClusterVerb reports whether a verb is about the cluster and not about topics.
func IsClusterVerb(v jobpb.Verb) bool { return v >= jobpb.Verb_VERB_OBSERVE }

// CheckAuthSettings checks settings as they are set.
func (l *Limits) CheckAuthSettings(s *jobpb.AuthSettings) error {
	if s == nil || s.Mode < 0 || s.Mode > jobpb.AuthMode_AUTH_ENFORCE {
		return Invalid("mode", "is missing or not known; it takes off, report or enforce")
	}
	if s.Revision != 0 {
		return Invalid("revision", "is set by the state machine alone")
	}
	for i, r := range s.Anonymous {
		if slices.Contains(r.GetVerbs(), jobpb.Verb_VERB_ADMIN) {
			return InItem("anonymous", i, Invalid("verbs", "must not have admin: who needs no token would make tokens"))
		}
	}
	return l.CheckRules("anonymous", s.Anonymous)
}

// SystemPrincipal is the principal of what the node itself does. It is not the id of a token.
const SystemPrincipal = "."

// PrincipalSeparator stands in a principal between the id of a token and the mark of its text:
// the first PrincipalMarkBytes of the text's hash. A principal without a text has neither.
const (
	PrincipalSeparator = "_"
	PrincipalMarkBytes = 6
)

// CheckPrincipal checks the principal of a token.
func (l *Limits) CheckPrincipal(p string) error {
	id, mark, text := strings.Cut(p, PrincipalSeparator)
	if text {
		if b, err := base64.RawURLEncoding.Strict().DecodeString(mark); err != nil || len(b) != PrincipalMarkBytes {
			return Invalid("principal", "has a mark that is none")
		}
	}
	return l.CheckTokenID("principal", id)
}

// CheckPeerPrincipal checks the principal that a peer sends with what a client wants; empty:
// it has none.
func CheckPeerPrincipal(p string) error {
	if p == "" {
		return nil
	}
	return Newest().CheckPrincipal(p)
}

// CheckInvitationID checks the id of an invitation, by the rule for the id of a token.
func CheckInvitationID(field, id string) error { return Newest().CheckTokenID(field, id) }

// Verbs is a set of verbs: what a token allows, and what an operation needs.
type Verbs uint16

// The verbs. Observe, Operate and Admin are about the cluster, the others about a topic.
const (
	VerbAdd     = Verbs(1) << jobpb.Verb_VERB_ADD
	VerbConsume = Verbs(1) << jobpb.Verb_VERB_CONSUME
	VerbRead    = Verbs(1) << jobpb.Verb_VERB_READ
	VerbManage  = Verbs(1) << jobpb.Verb_VERB_MANAGE
	VerbPush    = Verbs(1) << jobpb.Verb_VERB_PUSH
	VerbObserve = Verbs(1) << jobpb.Verb_VERB_OBSERVE
	VerbOperate = Verbs(1) << jobpb.Verb_VERB_OPERATE
	VerbAdmin   = Verbs(1) << jobpb.Verb_VERB_ADMIN
)

// VerbNames has the name of each verb at its number.
var VerbNames = [...]string{"", "add", "consume", "read", "manage", "push", "observe", "operate", "admin"}

// String lists the names of the verbs.
func (v Verbs) String() string {
	var names []string
	for i, name := range VerbNames {
		if i > 0 && v&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
