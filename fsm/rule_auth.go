package fsm

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/job/jobpb"
)

// Whether a principal may do an operation is decided here, when it is applied: ids, seqs and
// tokens of reservations name no topic, jobs move, and what follows a revocation in the log
// must not pass. An operation first needs the rights on the topics that it names, before it
// is done; then, where it finds a job (rule_ref.go), those on the topic of the job.

// right is what the principal of an operation needs.
type right struct {
	// node: only the leader makes the operation, so it has no principal.
	node bool
	// ofNode reports whether the leader made the operation, if clients make some, too. No
	// node accepts such a one from another.
	ofNode func(*jobpb.Op) bool
	// admin: it needs the verb admin, in every mode.
	admin bool
	// onJob are the verbs that it needs on the topic of a job that it names.
	onJob auth.Verbs
	// onTopics refuses it unless its principal has the verbs on the topics that it names,
	// and reports whether it may be done.
	onTopics func(*tx, *jobpb.Op, *jobpb.Result) (bool, error)
}

// decides reports whether the row says who may do an operation. Nobody may do one of which
// nothing is known.
func (r *right) decides() bool { return r.node || r.admin || r.onJob != 0 || r.onTopics != nil }

// rights has a row for each operation, by the name of its field in jobpb.Op.
var rights = map[string]right{
	"add":           {onTopics: func(x *tx, op *jobpb.Op, r *jobpb.Result) (bool, error) { return x.mayAdd(op.GetAdd(), r), nil }},
	"atomic_add":    {onJob: auth.Consume, onTopics: (*tx).mayAtomicAdd},
	"finish":        {onJob: auth.Consume},
	"release":       {onJob: auth.Consume},
	"touch":         {onJob: auth.Consume},
	"bury":          {onJob: auth.Consume},
	"reserve_job":   {onJob: auth.Consume},
	"reserve":       {onTopics: func(x *tx, op *jobpb.Op, r *jobpb.Result) (bool, error) { return x.mayReserve(op.GetReserve(), r), nil }},
	"delete":        {onJob: auth.Manage, onTopics: (*tx).mayDelete},
	"update":        {onJob: auth.Manage, onTopics: (*tx).mayUpdate},
	"kick":          {onJob: auth.Manage, onTopics: (*tx).mayKick},
	"kick_topic":    {onTopics: (*tx).mayKickTopic},
	"move_jobs":     {onJob: auth.Manage, onTopics: (*tx).mayMove},
	"purge":         {onTopics: onTopic(auth.Manage, func(op *jobpb.Op) string { return op.GetPurge().GetTopic() })},
	"release_topic": {onTopics: onTopic(auth.Manage, func(op *jobpb.Op) string { return op.GetReleaseTopic().GetTopic() })},
	"pause_topic":   {onTopics: onTopic(auth.Manage, func(op *jobpb.Op) string { return op.GetPauseTopic().GetTopic() })},
	"set_topic":     {onTopics: (*tx).maySetTopic},
	"put_schedule":  {onTopics: (*tx).mayPutSchedule},
	"delete_schedule": {onTopics: func(x *tx, op *jobpb.Op, r *jobpb.Result) (bool, error) {
		return x.mayUseSchedule(op.GetDeleteSchedule().GetName(), auth.Manage, r)
	}},
	"fire_schedule": {
		ofNode:   func(op *jobpb.Op) bool { return !op.GetFireSchedule().GetNow() },
		onTopics: (*tx).mayFireSchedule,
	},
	"put_token":      {admin: true},
	"delete_token":   {admin: true},
	"set_auth":       {admin: true},
	"put_invitation": {onTopics: mayOperate},
	"end_invitation": {onTopics: mayOperate, ofNode: func(op *jobpb.Op) bool { return op.GetEndInvitation().GetServerId() != "" }},
	"set_admission":  {onTopics: mayOperate},

	"promote_standby": {onTopics: mayOperate},

	"put_namespace":    {onTopics: mayChangeNamespaces},
	"delete_namespace": {onTopics: mayChangeNamespaces},

	"import_job": {onTopics: mayImportJob},

	"advance":       {node: true},
	"advance_at":    {node: true}, // its Reserves have principals
	"migrate":       {node: true},
	"mark":          {node: true},
	"set_cluster":   {node: true},
	"forget_member": {node: true},
	"admit_node":    {node: true},
	"raise_version": {node: true},
	"follow_log":    {node: true},
	"reset_clock":   {node: true},

	"put_state_chunk":   {node: true},
	"drop_state_chunks": {node: true},
	"replace_state":     {node: true},
}

// rightOf has the rows by the number of the field.
var rightOf = rightsByNumber()

func rightsByNumber() []right {
	var rows []right
	fields := (*jobpb.Op)(nil).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range fields.Len() {
		row, found := rights[string(fields.Get(i).Name())]
		if !found || !row.decides() {
			panic(fmt.Sprintf("fsm/rule_auth.go has no row for the operation %s", fields.Get(i).Name()))
		}
		for len(rows) <= int(fields.Get(i).Number()) {
			rows = append(rows, right{})
		}
		rows[fields.Get(i).Number()] = row
	}
	return rows
}

// rightOfOp returns the row of an operation with a number. It decides nothing if the table
// has none.
func rightOfOp(op *jobpb.Op, number uint64) *right {
	if number < uint64(len(rightOf)) {
		return &rightOf[number]
	}
	return nextRight(op)
}

// caller is the principal of the running operation.
type caller struct {
	principal auth.Principal
	grants    *auth.Grants
	denial    auth.Denial // why it may do nothing; Allowed: its grants decide
	onJob     auth.Verbs  // that the operation needs on the topic of the job that it names
	orOnJob   auth.Verbs  // that are enough instead; 0: none
	denied    *jobpb.Denied
}

// checked does an operation if its principal may do it.
func (x *tx) checked(op *jobpb.Op, r *jobpb.Result) error {
	row := rightOfOp(op, x.ops.Number())
	if !row.decides() {
		return fmt.Errorf("this release does not know who may do the operation %T: it was written by a newer release; upgrade this node", op.Kind)
	}
	text := op.Principal
	if reserve := op.GetReserve(); reserve != nil {
		text = reserve.Principal
	}
	p := auth.DecodePrincipal(text)
	if row.node || row.admin || p.IsSystem() || row.ofNode != nil && row.ofNode(op) {
		return x.do(op, r)
	}
	return x.as(p, row.onJob, r, func() error {
		if row.onTopics != nil {
			if ok, err := row.onTopics(x, op, r); !ok || err != nil {
				return err
			}
		}
		return x.do(op, r)
	})
}

// asAdmin makes an operation need the verb admin, in every mode. The first token needs none,
// nor does one after tarry auth reset: the node that proposes it has seen a proof of who may
// make it.
func asAdmin(do func(*tx, *jobpb.Op, *jobpb.Result) error) func(*tx, *jobpb.Op, *jobpb.Result) error {
	return func(x *tx, op *jobpb.Op, r *jobpb.Result) error {
		p := auth.DecodePrincipal(op.Principal)
		if p.IsSystem() || op.GetPutToken().GetBootstrap() {
			return do(x, op, r)
		}
		return x.as(p, 0, r, func() error {
			missing, why := x.caller.lacks(auth.Admin, "")
			if missing == 0 {
				return do(x, op, r)
			}
			x.deny(missing, "", why)
			x.forbid(missing, "", why, r)
			return nil
		})
	}
}

// mayOperate needs the verb operate, as the other calls that change the members do.
func mayOperate(x *tx, _ *jobpb.Op, r *jobpb.Result) (bool, error) {
	return x.may(auth.Operate, "", r), nil
}

// as calls do with a principal as the caller.
func (x *tx) as(p auth.Principal, onJob auth.Verbs, r *jobpb.Result, do func() error) error {
	c := &x.callers
	*c = caller{principal: p, onJob: onJob}
	c.grants, c.denial = x.m.auth.GrantsOf(p, x.clock())
	x.caller = c
	err := do()
	x.caller = nil
	if c.denied != nil && x.replies {
		if r.Details == nil {
			r.Details = new(jobpb.Details)
		}
		r.Details.Denied = c.denied
	}
	return err
}

// lacks returns which of verbs the caller does not have on a topic, and why.
func (c *caller) lacks(verbs auth.Verbs, topic string) (auth.Verbs, auth.Denial) {
	if c.denial != auth.Allowed {
		return verbs, c.denial
	}
	missing := c.grants.Missing(verbs, topic)
	switch {
	case missing == 0:
		return 0, auth.Allowed
	case c.principal.IsAnonymous():
		return missing, auth.NoToken
	}
	return missing, auth.NotGranted
}

// deny records what the caller lacks, and reports whether the operation must be refused.
func (x *tx) deny(missing auth.Verbs, topic string, why auth.Denial) bool {
	if x.replies && x.caller.denied == nil {
		x.caller.denied = &jobpb.Denied{Verbs: uint32(missing), Topic: strings.Clone(topic), Reason: uint32(why)}
	}
	return x.m.auth.Mode() == jobpb.AuthMode_AUTH_ENFORCE
}

// may reports whether the caller may do verbs on a topic that the operation names; if not,
// it refuses the operation.
func (x *tx) may(verbs auth.Verbs, topic string, r *jobpb.Result) bool {
	missing, why := x.caller.lacks(verbs, topic)
	if missing == 0 || !x.deny(missing, topic, why) {
		return true
	}
	x.forbid(missing, topic, why, r)
	return false
}

func (x *tx) forbid(missing auth.Verbs, topic string, why auth.Denial, r *jobpb.Result) {
	_ = x.refuse(r, jobpb.Code_FORBIDDEN, "%s", auth.Forbidden(why, missing, topic))
}

// knows reports whether the caller may learn what is in a topic.
func (x *tx) knows(topic string) bool {
	missing, _ := x.caller.lacks(auth.Read, topic)
	return missing == 0
}

// mayTouch reports whether the caller may do the operation to a job of a topic. If not, it
// refuses the operation: as if there were no such job, unless the caller may read it.
func (x *tx) mayTouch(t *topic, ref *jobpb.Ref, r *jobpb.Result) bool {
	if x.caller == nil {
		return true
	}
	missing, why := x.caller.lacks(x.caller.onJob, t.name)
	if instead := x.caller.orOnJob; missing != 0 && instead != 0 {
		if less, _ := x.caller.lacks(instead, t.name); less == 0 {
			return true
		}
	}
	switch {
	case missing == 0 || !x.deny(missing, t.name, why):
		return true
	case x.knows(t.name):
		x.forbid(missing, t.name, why, r)
	default:
		_ = x.refuseMissing(ref, r)
	}
	return false
}

// mayFindID reports whether the add of the caller may learn of the job that has its id, whose
// topic is t. Who may not read that learns only that the id is taken.
func (x *tx) mayFindID(op *jobpb.Add, t *topic, r *jobpb.Result) bool {
	return x.mayMeet(auth.Read, op, t, r)
}

// mayReplace reports whether the add of the caller may replace or postpone a job of t. Who may
// add to two topics may not by that take jobs out of either.
func (x *tx) mayReplace(op *jobpb.Add, t *topic, r *jobpb.Result) bool {
	verb := auth.Manage
	if x.m.meta.version < entryVersion {
		verb = auth.Add
	}
	return x.mayMeet(verb, op, t, r)
}

// mayMeet reports whether the add of the caller has a right on the topic of the job with its
// id, if that is another one.
func (x *tx) mayMeet(verb auth.Verbs, op *jobpb.Add, t *topic, r *jobpb.Result) bool {
	if x.caller == nil || t.name == op.Topic {
		return true
	}
	missing, why := x.caller.lacks(verb, t.name)
	switch {
	case missing == 0 || !x.deny(missing, t.name, why):
		return true
	case x.knows(t.name):
		x.forbid(missing, t.name, why, r)
	default:
		_ = x.refuse(r, jobpb.Code_ID_CONFLICT, "id %.40q is taken", op.Id)
	}
	return false
}

// onTopic needs verbs on the topic of an operation.
func onTopic(verbs auth.Verbs, topic func(*jobpb.Op) string) func(*tx, *jobpb.Op, *jobpb.Result) (bool, error) {
	return func(x *tx, op *jobpb.Op, r *jobpb.Result) (bool, error) { return x.may(verbs, topic(op), r), nil }
}

// entryVerbs returns what it takes to bring a job into a topic, in whichever way it enters. A
// push_url is a way out of the network, and what is posted there is signed with the topic's
// secret.
func entryVerbs(pushURL bool) auth.Verbs {
	if pushURL {
		return auth.Add | auth.Push
	}
	return auth.Add
}

func addVerbs(op *jobpb.Add) auth.Verbs { return entryVerbs(op.GetOptions().GetPushUrl() != "") }

func (x *tx) mayAdd(op *jobpb.Add, r *jobpb.Result) bool {
	return x.may(addVerbs(op), op.Topic, r) && x.mayUseID(op.Id, op.Topic, r)
}

// entryVersion is the cluster version from which on a move, a kick and a run that is started
// by hand need what an add of the job needs, and a replacement in another topic what a delete
// needs. Before, they need the verb add alone, because nodes of a release that decides so
// apply the same log.
const entryVersion = 2

// mayEnter reports whether the caller may let jobs that an operation finds enter a topic:
// such with a push_url, if pushURL. If not, it refuses the operation.
func (x *tx) mayEnter(topic string, pushURL bool, r *jobpb.Result) bool {
	return x.caller == nil || !pushURL || x.m.meta.version < entryVersion || x.may(entryVerbs(pushURL), topic, r)
}

// mayUseID refuses an id that does not begin with the prefix of the caller's token.
func (x *tx) mayUseID(id, topic string, r *jobpb.Result) bool {
	why := x.m.auth.CheckID(x.caller.principal, id)
	if why == auth.Allowed || !x.deny(auth.Add, topic, why) {
		return true
	}
	x.forbid(auth.Add, topic, why, r)
	return false
}

func (x *tx) mayAtomicAdd(op *jobpb.Op, r *jobpb.Result) (bool, error) {
	for _, add := range op.GetAtomicAdd().GetAdds() {
		if !x.mayAdd(add, r) {
			return false, nil
		}
	}
	return true, nil
}

func (x *tx) mayReserve(op *jobpb.Reserve, r *jobpb.Result) bool {
	for _, topic := range op.Topics {
		if !x.may(auth.Consume, topic, r) {
			return false
		}
	}
	return true
}

// mayDelete lets a consumer delete what it holds: with the token of the reservation a delete
// does no more than a finish.
func (x *tx) mayDelete(op *jobpb.Op, _ *jobpb.Result) (bool, error) {
	if op.GetDelete().GetRef().GetGeneration() != 0 {
		x.caller.orOnJob = auth.Consume
	}
	return true, nil
}

func (x *tx) mayUpdate(op *jobpb.Op, _ *jobpb.Result) (bool, error) {
	if op.GetUpdate().GetPushUrl() != "" {
		x.caller.onJob |= auth.Push
	}
	return true, nil
}

// mayAddTo needs the verb add on the topic that jobs go to; empty: they stay. What the jobs
// need beyond that is decided when they are found (checkTarget).
func (x *tx) mayAddTo(topic string, r *jobpb.Result) bool {
	return topic == "" || x.may(entryVerbs(false), topic, r)
}

func (x *tx) mayKick(op *jobpb.Op, r *jobpb.Result) (bool, error) {
	return x.mayAddTo(op.GetKick().GetToTopic(), r), nil
}

func (x *tx) mayKickTopic(op *jobpb.Op, r *jobpb.Result) (bool, error) {
	k := op.GetKickTopic()
	return x.may(auth.Manage, k.Topic, r) && x.mayAddTo(k.ToTopic, r), nil
}

func (x *tx) mayMove(op *jobpb.Op, r *jobpb.Result) (bool, error) {
	k := op.GetMoveJobs()
	if k.Ref == nil && !x.may(auth.Manage, k.Topic, r) {
		return false, nil
	}
	return x.mayAddTo(k.To, r), nil
}

// maySetTopic also needs the verb push for another target. That takes jobs out of the
// network; none keeps them in it.
func (x *tx) maySetTopic(op *jobpb.Op, r *jobpb.Result) (bool, error) {
	k := op.GetSetTopic()
	verbs := auth.Manage
	if push := k.Settings.GetPush(); push != nil && !proto.Equal(push, x.m.settings[k.Topic].GetPush()) {
		verbs |= auth.Push
	}
	return x.may(verbs, k.Topic, r), nil
}

// mayPutSchedule needs the rights on the topic that a schedule has, and on that which it
// gets.
func (x *tx) mayPutSchedule(op *jobpb.Op, r *jobpb.Result) (bool, error) {
	k := op.GetPutSchedule()
	if ok, err := x.mayUseSchedule(k.Name, auth.Manage, r); !ok || err != nil || k.Schedule == nil {
		return ok, err
	}
	topic := k.Schedule.Job.GetTopic()
	return x.may(auth.Manage|addVerbs(k.Schedule.Job), topic, r) && x.mayUseID(k.Name, topic, r), nil
}

// mayUseSchedule reports whether the caller may do verbs on the topic of a schedule. If not,
// it refuses the operation: as if there were no such schedule, unless the caller may read it.
func (x *tx) mayUseSchedule(name string, verbs auth.Verbs, r *jobpb.Result) (bool, error) {
	s, err := x.schedule(name)
	if s == nil || err != nil {
		return err == nil, err // the operation itself refuses what does not exist
	}
	return x.mayUse(s, verbs, r)
}

func (x *tx) mayUse(s *schedule, verbs auth.Verbs, r *jobpb.Result) (bool, error) {
	topic := s.def.GetJob().GetTopic()
	missing, why := x.caller.lacks(verbs, topic)
	switch {
	case missing == 0 || !x.deny(missing, topic, why):
		return true, nil
	case x.knows(topic):
		x.forbid(missing, topic, why, r)
		return false, nil
	}
	return false, x.refuseSchedule(s.name, r)
}

// mayFireSchedule also needs what an add of the run's job needs.
func (x *tx) mayFireSchedule(op *jobpb.Op, r *jobpb.Result) (bool, error) {
	s, err := x.schedule(op.GetFireSchedule().GetName())
	if s == nil || err != nil {
		return err == nil, err // the operation itself refuses what does not exist
	}
	verbs := auth.Manage | auth.Add
	if x.m.meta.version >= entryVersion {
		verbs |= addVerbs(s.def.GetJob())
	}
	return x.mayUse(s, verbs, r)
}

// reserveAhead does a Reserve of an AdvanceAt, if its principal may.
func (x *tx) reserveAhead(op *jobpb.Reserve, r *jobpb.Result) error {
	p := auth.DecodePrincipal(op.Principal)
	if x.m.auth.Mode() == jobpb.AuthMode_AUTH_OFF || p.IsSystem() {
		return x.reserve(op, r)
	}
	return x.as(p, 0, r, func() error {
		if !x.mayReserve(op, r) {
			return nil
		}
		return x.reserve(op, r)
	})
}
