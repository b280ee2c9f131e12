package job

import (
	"strings"

	"tarry/job/jobpb"
)

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
