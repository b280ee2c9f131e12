package oplog

import (
	"cmp"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/job"
	"tarry/job/jobpb"
)

// operation is what there is to know about a kind of operation without the state. What it does is
// in package fsm, which has the only other table of operations.
type operation struct {
	// since is the cluster version that brought it; 0: job.FirstVersion.
	since uint32
	// adds: it may make jobs, so it is refused while the disk is low.
	adds bool
	// leaderOnly: only the leader makes it, except those for which byClient, if not nil,
	// reports that a client caused them. forClient: it makes them for a client, whose principal they have.
	leaderOnly, forClient bool
	byClient              func(*jobpb.Op) bool
	// ofCluster: it is about the nodes of one cluster. A standby has its own, and skips those of
	// its primary. All others are about jobs, or what clients may do with them: a standby does
	// them when its primary did, and refuses them in its own log. The version is that of the
	// records and limits, so it is the primary's: an entry has the same effect on both.
	ofCluster bool
	// route is which group of a cluster with several shards gets it, unless it names a job.
	route Route
	// check holds the rules that need neither the clock nor the state.
	check func(*job.Limits, *jobpb.Op) error

	// admin: it needs the verb admin, in every mode.
	admin bool
	// onJob are the verbs that it needs on the topic of the job that it names, wherever that is.
	onJob func(*jobpb.Op) job.Verbs
	// needs calls need for the verbs that it needs on the topics that it names, until that
	// returns false. What needs the state beside is in package fsm.
	needs func(op *jobpb.Op, need func(job.Verbs, string) bool) bool

	// topic is one that it names, ref the job that it names, ends the reservation that it ends,
	// and jobs are those that it brings; nil: none.
	topic func(*jobpb.Op) string
	ref   func(*jobpb.Op) *jobpb.Ref
	name  func(*jobpb.Op) string // that of what it is about, if its message has one
	ends  func(*jobpb.Op) (*jobpb.Ref, bool)
	jobs  func(*jobpb.Op) []*jobpb.Add
}

// Route is which groups of a cluster with several shards get an operation. With one shard, its one
// group gets all.
type Route uint8

const (
	// RouteGroup: the leader of a group makes it, for its own.
	RouteGroup Route = iota + 1
	// RouteConfig: the config group.
	RouteConfig
	// RouteJob: the shard of the job that it names (RefOf).
	RouteJob
	// RouteAdds: the shard of the ids of the jobs that it brings (AddsOf); without an id, any.
	RouteAdds
	// RouteSchedule: the shard of the schedule's name (NameOf).
	RouteSchedule
	// RouteTopic: all shards, because each has jobs of the topic.
	RouteTopic
)

// kind completes a row with what the schema says: the topic or the job that the message of an
// operation names.
func kind[K any](get func(*jobpb.Op) K, check func(*job.Limits, K) error, row operation) operation {
	if check != nil {
		row.check = func(l *job.Limits, op *jobpb.Op) error { return check(l, get(op)) }
	}
	var message any = *new(K)
	if _, is := message.(interface{ GetTopic() string }); is {
		row.topic = func(op *jobpb.Op) string { return any(get(op)).(interface{ GetTopic() string }).GetTopic() }
	}
	if _, is := message.(interface{ GetRef() *jobpb.Ref }); is {
		row.ref = func(op *jobpb.Op) *jobpb.Ref { return any(get(op)).(interface{ GetRef() *jobpb.Ref }).GetRef() }
		row.route = cmp.Or(row.route, RouteJob)
	}
	if _, is := message.(interface{ GetName() string }); is {
		row.name = func(op *jobpb.Op) string { return any(get(op)).(interface{ GetName() string }).GetName() }
	}
	return row
}

func refCheck[K interface{ GetRef() *jobpb.Ref }](_ *job.Limits, k K) error {
	return checkRef(k.GetRef())
}

// operations has a row for each operation, by the name of its field in jobpb.Op.
var operations = map[protoreflect.Name]operation{
	"add": kind((*jobpb.Op).GetAdd, checkAdd, operation{
		route: RouteAdds,
		adds:  true, jobs: func(op *jobpb.Op) []*jobpb.Add { return []*jobpb.Add{op.GetAdd()} },
		needs: func(op *jobpb.Op, need needed) bool { return needsAdd(op.GetAdd(), 0, need) },
	}),
	"atomic_add": kind((*jobpb.Op).GetAtomicAdd, checkAtomicAdd, operation{
		route: RouteAdds,
		adds:  true, jobs: func(op *jobpb.Op) []*jobpb.Add { return op.GetAtomicAdd().GetAdds() },
		ends: func(op *jobpb.Op) (*jobpb.Ref, bool) {
			finish := op.GetAtomicAdd().GetFinish()
			return finish.GetRef(), finish != nil
		},
		topic: func(op *jobpb.Op) string { return firstTopic(op.GetAtomicAdd().GetAdds()) },
		onJob: always(job.VerbConsume),
		needs: func(op *jobpb.Op, need needed) bool {
			for _, add := range op.GetAtomicAdd().GetAdds() {
				if !needsAdd(add, 0, need) {
					return false
				}
			}
			return true
		},
	}),
	"import_job": kind((*jobpb.Op).GetImportJob, checkImportJob, operation{
		route: RouteAdds,
		since: 2, adds: true, jobs: func(op *jobpb.Op) []*jobpb.Add { return []*jobpb.Add{op.GetImportJob().GetAdd()} },
		topic: func(op *jobpb.Op) string { return op.GetImportJob().GetAdd().GetTopic() },
		// What a job brings with it, such as its attempts and that it is dead, is otherwise up to
		// who manages the topic.
		needs: func(op *jobpb.Op, need needed) bool {
			return needsAdd(op.GetImportJob().GetAdd(), job.VerbManage, need)
		},
	}),

	"reserve": kind((*jobpb.Op).GetReserve, CheckReserve, operation{
		route:      RouteGroup,
		leaderOnly: true, forClient: true,
		topic: func(op *jobpb.Op) string {
			if topics := op.GetReserve().GetTopics(); len(topics) > 0 {
				return topics[0]
			}
			return ""
		},
		needs: func(op *jobpb.Op, need needed) bool {
			for _, topic := range op.GetReserve().GetTopics() {
				if !need(job.VerbConsume, topic) {
					return false
				}
			}
			return true
		},
	}),
	"reserve_job": kind((*jobpb.Op).GetReserveJob, checkReserveJob, operation{onJob: always(job.VerbConsume)}),
	"finish":      kind((*jobpb.Op).GetFinish, refCheck, operation{onJob: always(job.VerbConsume), ends: its((*jobpb.Op).GetFinish)}),
	"release":     kind((*jobpb.Op).GetRelease, checkRelease, operation{onJob: always(job.VerbConsume), ends: its((*jobpb.Op).GetRelease)}),
	"bury":        kind((*jobpb.Op).GetBury, checkBury, operation{onJob: always(job.VerbConsume), ends: its((*jobpb.Op).GetBury)}),
	"touch":       kind((*jobpb.Op).GetTouch, checkTouch, operation{onJob: always(job.VerbConsume)}),
	"delete": kind((*jobpb.Op).GetDelete, checkDelete, operation{onJob: always(job.VerbManage), ends: func(op *jobpb.Op) (*jobpb.Ref, bool) {
		ref := op.GetDelete().GetRef()
		return ref, ref.GetGeneration() != 0 // as older clients finish
	}}),
	"update": kind((*jobpb.Op).GetUpdate, checkUpdate, operation{onJob: func(op *jobpb.Op) job.Verbs {
		if op.GetUpdate().GetPushUrl() != "" {
			return job.VerbManage | job.VerbPush
		}
		return job.VerbManage
	}}),
	"kick": kind((*jobpb.Op).GetKick, checkKick, operation{
		onJob: always(job.VerbManage),
		needs: func(op *jobpb.Op, need needed) bool { return needsEntry(op.GetKick().GetToTopic(), need) },
	}),

	"kick_topic": kind((*jobpb.Op).GetKickTopic, checkKickTopic, operation{
		route: RouteTopic,
		needs: func(op *jobpb.Op, need needed) bool {
			return need(job.VerbManage, op.GetKickTopic().GetTopic()) && needsEntry(op.GetKickTopic().GetToTopic(), need)
		},
	}),
	"move_jobs": kind((*jobpb.Op).GetMoveJobs, checkMoveJobs, operation{
		route: RouteTopic,
		onJob: always(job.VerbManage),
		needs: func(op *jobpb.Op, need needed) bool {
			k := op.GetMoveJobs()
			return (k.GetRef() != nil || need(job.VerbManage, k.GetTopic())) && needsEntry(k.GetTo(), need)
		},
	}),
	"release_topic": manages(kind((*jobpb.Op).GetReleaseTopic, func(l *job.Limits, k *jobpb.ReleaseTopic) error {
		return cmp.Or(
			job.Within("max", int64(k.Max), 1, int64(l.MaxKick)), l.CheckConsumer("consumer", k.Consumer),
			l.CheckReason(k.Reason), checkSweep(l, k.Sweep),
		)
	}, operation{route: RouteTopic})),
	"purge":       manages(kind((*jobpb.Op).GetPurge, checkPurge, operation{route: RouteTopic})),
	"pause_topic": manages(kind((*jobpb.Op).GetPauseTopic, checkPauseTopic, operation{route: RouteTopic})),
	"set_topic":   manages(kind((*jobpb.Op).GetSetTopic, checkSetTopic, operation{route: RouteConfig})),

	"put_schedule": kind((*jobpb.Op).GetPutSchedule, checkPutSchedule, operation{
		route: RouteSchedule,
		needs: func(op *jobpb.Op, need needed) bool {
			add := op.GetPutSchedule().GetSchedule().GetJob()
			return add == nil || needsAdd(add, job.VerbManage, need)
		},
	}),
	"delete_schedule": kind((*jobpb.Op).GetDeleteSchedule, nil, operation{route: RouteSchedule}),
	// A client causes a run that starts now.
	"fire_schedule": kind((*jobpb.Op).GetFireSchedule, checkFireSchedule, operation{
		route: RouteSchedule,
		adds:  true, leaderOnly: true, byClient: func(op *jobpb.Op) bool { return op.GetFireSchedule().GetNow() },
	}),

	"advance":       kind((*jobpb.Op).GetAdvance, checkAdvance, operation{route: RouteGroup, leaderOnly: true}),
	"advance_at":    kind((*jobpb.Op).GetAdvanceAt, checkAdvanceAt, operation{route: RouteGroup, leaderOnly: true}), // its Reserves have principals
	"reset_clock":   {route: RouteGroup, leaderOnly: true},
	"raise_version": {route: RouteGroup, leaderOnly: true},
	"migrate": kind((*jobpb.Op).GetMigrate, func(l *job.Limits, k *jobpb.Migrate) error {
		return job.Within("max", int64(k.Max), 1, int64(l.MaxMigrate))
	},
		operation{route: RouteGroup, leaderOnly: true}),

	"put_token": kind((*jobpb.Op).GetPutToken, checkPutToken, operation{route: RouteConfig, admin: true}),
	"delete_token": kind((*jobpb.Op).GetDeleteToken, func(l *job.Limits, k *jobpb.DeleteToken) error { return l.CheckTokenID("id", k.GetId()) },
		operation{route: RouteConfig, admin: true}),
	"set_auth": kind((*jobpb.Op).GetSetAuth, func(l *job.Limits, k *jobpb.SetAuth) error { return l.CheckAuthSettings(k.GetSettings()) },
		operation{route: RouteConfig, admin: true}),
	"put_namespace": kind((*jobpb.Op).GetPutNamespace, func(l *job.Limits, k *jobpb.PutNamespace) error { return l.CheckNamespace(k.GetNamespace()) }, operation{route: RouteConfig}),
	"delete_namespace": kind((*jobpb.Op).GetDeleteNamespace, func(l *job.Limits, k *jobpb.DeleteNamespace) error {
		return l.CheckNamespaceName("name", k.GetName())
	}, operation{route: RouteConfig}),

	"put_state_chunk": kind((*jobpb.Op).GetPutStateChunk, func(_ *job.Limits, k *jobpb.PutStateChunk) error { return checkPutStateChunk(k) },
		operation{route: RouteGroup, since: 2, leaderOnly: true}),
	"drop_state_chunks": {route: RouteGroup, since: 2, leaderOnly: true},
	"replace_state":     {route: RouteGroup, since: 2, leaderOnly: true},

	"mark":          {route: RouteGroup, leaderOnly: true, ofCluster: true},
	"set_cluster":   kind((*jobpb.Op).GetSetCluster, checkSetCluster, operation{route: RouteGroup, leaderOnly: true, ofCluster: true}),
	"forget_member": kind((*jobpb.Op).GetForgetMember, checkForgetMember, operation{route: RouteConfig, leaderOnly: true, ofCluster: true}),
	"admit_node": kind((*jobpb.Op).GetAdmitNode, func(l *job.Limits, k *jobpb.AdmitNode) error { return l.CheckRefID("node_id", k.GetNodeId()) },
		operation{route: RouteConfig, leaderOnly: true, ofCluster: true}),
	"put_invitation": kind((*jobpb.Op).GetPutInvitation, checkPutInvitation, operation{route: RouteConfig, ofCluster: true, needs: operates}),
	// A client revokes an invitation; the leader records that one was used.
	"end_invitation": kind((*jobpb.Op).GetEndInvitation, checkEndInvitation, operation{
		route:      RouteConfig,
		leaderOnly: true, byClient: func(op *jobpb.Op) bool { return op.GetEndInvitation().GetServerId() == "" },
		ofCluster: true, needs: operates,
	}),
	"set_admission": kind((*jobpb.Op).GetSetAdmission, checkSetAdmission, operation{route: RouteConfig, ofCluster: true, needs: operates}),
	"follow_log": kind((*jobpb.Op).GetFollowLog, func(_ *job.Limits, k *jobpb.FollowLog) error { return checkFollowLog(k) },
		operation{route: RouteGroup, since: 2, leaderOnly: true, ofCluster: true}),
	"config_log": kind((*jobpb.Op).GetConfigLog, checkConfigLog, operation{
		route: RouteGroup, since: 2, leaderOnly: true, ofCluster: true,
	}),
	"promote_standby": {route: RouteGroup, since: 2, ofCluster: true, needs: operates},
}

// needed is called with verbs that are needed on a topic, and reports whether the caller has them.
type needed = func(job.Verbs, string) bool

func always(v job.Verbs) func(*jobpb.Op) job.Verbs { return func(*jobpb.Op) job.Verbs { return v } }

// AddVerbs returns what it takes to bring a job into a topic, in whichever way it enters. A
// push_url is a way out of the network, and what is posted there is signed with the topic's
// secret.
func AddVerbs(pushURL bool) job.Verbs {
	if pushURL {
		return job.VerbAdd | job.VerbPush
	}
	return job.VerbAdd
}

// needsAdd needs what an add of the job needs, and more.
func needsAdd(add *jobpb.Add, more job.Verbs, need needed) bool {
	return need(AddVerbs(add.GetOptions().GetPushUrl() != "")|more, add.GetTopic())
}

// needsEntry needs the verb add on the topic that jobs go to; empty: they stay. What the jobs
// need beyond that is decided when they are found.
func needsEntry(topic string, need needed) bool { return topic == "" || need(job.VerbAdd, topic) }

func operates(_ *jobpb.Op, need needed) bool { return need(job.VerbOperate, "") }

// manages adds that an operation needs the verb manage on its topic.
func manages(row operation) operation {
	row.needs = func(op *jobpb.Op, need needed) bool { return need(job.VerbManage, row.topic(op)) }
	return row
}

// its is for an operation that ends the reservation that it names.
func its[K interface{ GetRef() *jobpb.Ref }](get func(*jobpb.Op) K) func(*jobpb.Op) (*jobpb.Ref, bool) {
	return func(op *jobpb.Op) (*jobpb.Ref, bool) { return get(op).GetRef(), true }
}

func firstTopic(adds []*jobpb.Add) string {
	if len(adds) == 0 {
		return ""
	}
	return adds[0].GetTopic()
}

var (
	opDescriptor = (*jobpb.Op)(nil).ProtoReflect().Descriptor()
	opName       = opDescriptor.FullName()
	entryFields  = (*jobpb.Entry)(nil).ProtoReflect().Descriptor().Fields()

	// operationOf has the rows by the number of the field.
	operationOf = ByNumber("job/oplog/operation.go", operations)
	addNumber   = uint64(opDescriptor.Fields().ByName("add").Number())

	// principalNumber is that of the field behind the operation in jobpb.Op.
	principalNumber = opDescriptor.Fields().ByName("principal").Number()

	// The tags of jobpb.Entry, by which an entry is made of encoded operations; each is
	// one byte.
	tagNow   = tagOf(entryFields.ByName("now_ms"), protowire.VarintType)
	tagOp    = tagOf(entryFields.ByName("ops"), protowire.BytesType)
	tagEpoch = tagOf(entryFields.ByName("clock_epoch"), protowire.VarintType)

	tagRoundedDown = tagOf(entryFields.ByName("rounded_down"), protowire.VarintType)

	tagsHeard = [...]byte{
		tagOf(entryFields.ByName("heard_ms"), protowire.VarintType), tagOf(entryFields.ByName("heard_epoch"), protowire.VarintType),
		tagOf(entryFields.ByName("heard_number"), protowire.VarintType),
	}
)

func tagOf(f protoreflect.FieldDescriptor, t protowire.Type) byte {
	return byte(protowire.EncodeTag(f.Number(), t))
}

// numberOf returns the number of an encoded operation, with which it begins.
func numberOf(op []byte) uint64 {
	if len(op) > 0 && op[0] < 0x80 {
		return uint64(op[0] >> 3)
	}
	tag, _ := uvarint(op)
	return tag >> 3
}

// rowOf returns the row of an operation. An unknown one has the empty row 0: its decoder
// refuses it.
func rowOf(number uint64) *operation {
	if number < uint64(len(operationOf)) {
		return &operationOf[number]
	}
	return &operationOf[0]
}

// isOne reports whether an encoded jobpb.Op is one operation, and behind it at most one
// principal. Of several, decoders use the last, while this file uses the first.
func isOne(op []byte) bool {
	number, _, n := protowire.ConsumeField(op)
	if n < 0 || number == principalNumber {
		return false
	}
	if op = op[n:]; len(op) == 0 {
		return true
	}
	number, _, n = protowire.ConsumeField(op)
	return number == principalNumber && n == len(op)
}

// forLeader reports whether only the leader makes op, whose row is r.
func (r *operation) forLeader(op *jobpb.Op) bool {
	return r.leaderOnly && (r.byClient == nil || !r.byClient(op))
}

// numbers has the number of each operation by the type of Op.Kind.
var numbers = func() map[reflect.Type]uint64 {
	m := make(map[reflect.Type]uint64)
	for i := range opDescriptor.Fields().Len() {
		if f := opDescriptor.Fields().Get(i); f.ContainingOneof() != nil {
			op := new(jobpb.Op)
			op.ProtoReflect().Set(f, op.ProtoReflect().NewField(f))
			m[reflect.TypeOf(op.Kind)] = uint64(f.Number())
		}
	}
	return m
}()

// Number returns the number of the operation, that of its field in jobpb.Op; 0: this release does
// not know it.
func Number(op *jobpb.Op) uint64 { return numbers[reflect.TypeOf(op.Kind)] }

// KindOf is the name of an operation's field in jobpb.Op; empty: it has none.
func KindOf(op *jobpb.Op) protoreflect.Name {
	if f := opDescriptor.Fields().ByNumber(protoreflect.FieldNumber(Number(op))); f != nil {
		return f.Name()
	}
	return ""
}

// ByNumber returns a table of operations by their numbers. rows must have one for each, by the name
// of its field in jobpb.Op.
func ByNumber[T any](file string, rows map[protoreflect.Name]T) []T {
	var table []T
	left := len(rows)
	for i := range opDescriptor.Fields().Len() {
		f := opDescriptor.Fields().Get(i)
		if f.ContainingOneof() == nil {
			continue // not an operation
		}
		row, found := rows[f.Name()]
		if !found {
			panic(fmt.Sprintf("%s has no row for the operation %s", file, f.Name()))
		}
		if missing := int(f.Number()) + 1 - len(table); missing > 0 {
			table = append(table, make([]T, missing)...)
		}
		table[f.Number()] = row
		left--
	}
	if left != 0 {
		panic(file + " has a row for what is no operation")
	}
	return table
}

func of(op *jobpb.Op) *operation { return rowOf(Number(op)) }

// Adds reports whether an operation may make jobs.
func Adds(op *jobpb.Op) bool { return of(op).adds }

// NeedsAdmin reports whether an operation is about tokens of clients, and so is checked in every
// mode.
func NeedsAdmin(op *jobpb.Op) bool { return of(op).admin }

// ByNode reports whether no client caused the operation, so that it has no principal.
func ByNode(op *jobpb.Op) bool { row := of(op); return row.forLeader(op) && !row.forClient }

// OfCluster reports whether the operation with a number is about the nodes of one cluster: a
// standby has its own.
func OfCluster(number uint64) bool { return rowOf(number).ofCluster }

// HasRights reports whether the row of the operation with a number says who may do it.
func HasRights(number uint64) bool {
	row := rowOf(number)
	return row.leaderOnly || row.admin || row.onJob != nil || row.needs != nil
}

// OnJob returns the verbs that an operation needs on the topic of the job that it names.
func OnJob(op *jobpb.Op) job.Verbs {
	if row := of(op); row.onJob != nil {
		return row.onJob(op)
	}
	return 0
}

// Needs calls need for the verbs that an operation needs on the topics that it names, and reports
// whether need returned true each time. It stops when need returns false.
func Needs(op *jobpb.Op, need func(job.Verbs, string) bool) bool {
	row := of(op)
	return row.needs == nil || row.needs(op, need)
}

// TopicOf returns a topic that an operation names; empty: it names none.
func TopicOf(op *jobpb.Op) string {
	if row := of(op); row.topic != nil {
		return row.topic(op)
	}
	return ""
}

// RouteOf returns which groups get an operation; 0: it is not known.
func RouteOf(op *jobpb.Op) Route {
	row := of(op)
	if row.ref != nil && row.ref(op) != nil {
		return RouteJob
	}
	return row.route
}

// NameOf returns the name of what an operation is about, such as a schedule; empty: it has none.
func NameOf(op *jobpb.Op) string {
	if row := of(op); row.name != nil {
		return row.name(op)
	}
	return ""
}

// RefOf returns the job that an operation names; nil: it names none.
func RefOf(op *jobpb.Op) *jobpb.Ref {
	if row := of(op); row.ref != nil {
		return row.ref(op)
	}
	return nil
}

// EndOf returns the reservation that an operation ends; false: it ends none.
func EndOf(op *jobpb.Op) (*jobpb.Ref, bool) {
	if row := of(op); row.ends != nil {
		return row.ends(op)
	}
	return nil, false
}

// AddsOf returns the jobs that an operation brings.
func AddsOf(op *jobpb.Op) []*jobpb.Add {
	if row := of(op); row.jobs != nil {
		return row.jobs(op)
	}
	return nil
}

// GiveBack returns the release of a job that no consumer received, so that its attempt does not count and
// the tokens of its topic's rate come back. Its reservation lasted holdMs longer than its TTR.
func GiveBack(j *jobpb.Reserved, holdMs int64) *jobpb.Release {
	return &jobpb.Release{
		Ref:         &jobpb.Ref{Seq: j.Seq, Generation: j.Generation},
		Undelivered: true, ReservedMs: j.ReservedUntilMs - j.TtrMs - holdMs,
	}
}
