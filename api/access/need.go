package access

import "tarry/auth"

// Need is what a caller must be allowed to do for a call. Each call has one. The zero value lets
// nobody in.
//
// It is the first of three looks. This one costs little and comes before the request is read.
// Then Queue looks at the topics in the request. The state machine decides.
type Need uint8

// The needs. Verbs are needed on the topic in the path, or else on some topic, unless it says All:
// then on all topics.
const (
	Nobody      Need = iota
	NeedNothing      // no token is looked at
	NeedProof        // nor here: the request has a proof in it
	NeedCaller       // who has a token, or needs none; the call itself shows only what it may
	NeedAdd
	NeedConsume
	NeedRead
	NeedReadOrManage
	NeedReadAll
	NeedManage
	NeedManageAll
	NeedCommand // for POST /, whose body says what it does
	NeedObserve
	NeedOperate      // by the tokens that the leader has now
	NeedOperateNode  // of this node alone, or wanted most without a leader
	NeedOperateEarly // also on a node that has not caught up yet: by what it knows, everybody may do it on a new node
	NeedAdmin
	NeedNamespaces // not checked while nothing is: a namespace hides nothing, unlike a token
	NeedRestore    // the same, because nobody has a token for it then; by the tokens that the leader has now
)

var needs = [...]struct {
	name  string
	verbs auth.Verbs
}{
	Nobody:           {"nobody", 0},
	NeedNothing:      {"nothing", 0},
	NeedProof:        {"a proof", auth.Admin},
	NeedCaller:       {"a caller", 0},
	NeedAdd:          {"add", auth.Add},
	NeedConsume:      {"consume", auth.Consume},
	NeedRead:         {"read", auth.Read},
	NeedReadOrManage: {"read or manage", auth.Read | auth.Manage},
	NeedReadAll:      {"read on all topics", auth.Read},
	NeedManage:       {"manage", auth.Manage},
	NeedManageAll:    {"manage on all topics", auth.Manage},
	NeedCommand:      {"add, consume or manage", auth.Add | auth.Consume | auth.Manage},
	NeedObserve:      {"observe", auth.Observe},
	NeedOperate:      {"operate", auth.Operate},
	NeedOperateNode:  {"operate, of a node", auth.Operate},
	NeedOperateEarly: {"operate, of a node that may be new", auth.Operate},
	NeedAdmin:        {"admin", auth.Admin},
	NeedNamespaces:   {"admin, for namespaces", auth.Admin},
	NeedRestore:      {"admin, for a restore", auth.Admin},
}

func (n Need) String() string { return needs[n].name }

// Verbs returns the verbs of which the caller must have one.
func (n Need) Verbs() auth.Verbs { return needs[n].verbs }

// Open reports whether no token is looked at.
func (n Need) Open() bool { return n == NeedNothing || n == NeedProof }

// Everywhere reports whether the verbs are needed on all topics.
func (n Need) Everywhere() bool { return n == NeedReadAll || n == NeedManageAll }

// Early reports whether a node decides that has not caught up with the leader yet. All that shows
// only the cluster is early.
func (n Need) Early() bool { return n == NeedCaller || n == NeedObserve || n == NeedOperateEarly }

// Fresh reports whether the tokens that the leader has now decide, unless stale data will do.
func (n Need) Fresh() bool { return n == NeedOperate || n == NeedRestore }

// UnlessOff reports whether the mode off lets everybody in although the need is of admin.
func (n Need) UnlessOff() bool { return n == NeedNamespaces || n == NeedRestore }

// Audited reports whether the audit log has the calls that need this, denied or not.
func (n Need) Audited() bool {
	return n.Verbs()&(auth.Push|auth.Operate|auth.Admin) != 0 || n == NeedManage || n == NeedManageAll
}
