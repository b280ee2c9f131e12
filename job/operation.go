package job

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/job/jobpb"
)

// operation has the properties of an operation that other code depends on.
type operation struct {
	// since is the cluster version that brought it; 0: FirstVersion.
	since uint32
	// adds: it may make jobs, so it is refused while the disk is low.
	adds bool
	// leaderOnly: only the leader makes it, except those for which byClient, if not nil,
	// reports that a client caused them.
	leaderOnly bool
	byClient   func(*jobpb.Op) bool
	// check holds the rules that need neither the clock nor the state; those of the
	// operations that are made most often are in CheckOp.
	check func(*Limits, *jobpb.Op) error
}

// operations has a row for each operation, by the name of its field in jobpb.Op.
var operations = map[protoreflect.Name]operation{
	"add":        {adds: true},
	"atomic_add": {adds: true},
	"finish":     {},
	"release":    {},
	"touch":      {},
	"bury":       {},
	"kick":       {},
	"delete":     {},
	"update":     {},
	"reserve":    {leaderOnly: true},
	"purge":      {},
	"advance":    {leaderOnly: true},
	"advance_at": {leaderOnly: true, check: func(l *Limits, op *jobpb.Op) error { return l.checkAdvanceAt(op.GetAdvanceAt()) }},
	"migrate":    {leaderOnly: true},
	"mark":       {leaderOnly: true},
	"move_jobs":  {},
	"kick_topic": {},
	"release_topic": {check: func(l *Limits, op *jobpb.Op) error {
		k := op.GetReleaseTopic()
		return firstOf(Within("max", int64(k.Max), 1, int64(l.MaxKick)), l.CheckConsumer("consumer", k.Consumer), l.checkReason(k.Reason), l.checkSweep(k.Sweep))
	}},
	"pause_topic":     {},
	"set_topic":       {},
	"reserve_job":     {},
	"put_schedule":    {},
	"delete_schedule": {},
	// A client causes a run that starts now.
	"fire_schedule": {adds: true, leaderOnly: true, byClient: func(op *jobpb.Op) bool { return op.GetFireSchedule().GetNow() }},
	"set_cluster":   {leaderOnly: true},
	"forget_member": {leaderOnly: true},
	"admit_node":    {leaderOnly: true, check: func(l *Limits, op *jobpb.Op) error { return l.CheckRefID("node_id", op.GetAdmitNode().GetNodeId()) }},
	// A client revokes an invitation; the leader records that one was used.
	"end_invitation": {
		leaderOnly: true, byClient: func(op *jobpb.Op) bool { return op.GetEndInvitation().GetServerId() == "" },
		check: func(l *Limits, op *jobpb.Op) error { return l.checkEndInvitation(op.GetEndInvitation()) },
	},
	"put_invitation": {check: func(l *Limits, op *jobpb.Op) error { return l.checkPutInvitation(op.GetPutInvitation()) }},
	"set_admission":  {check: func(l *Limits, op *jobpb.Op) error { return l.checkSetAdmission(op.GetSetAdmission()) }},
	"raise_version":  {leaderOnly: true},
	"reset_clock":    {leaderOnly: true},
	"put_token":      {check: func(l *Limits, op *jobpb.Op) error { return l.checkPutToken(op.GetPutToken()) }},
	"delete_token":   {check: func(l *Limits, op *jobpb.Op) error { return l.CheckTokenID("id", op.GetDeleteToken().GetId()) }},
	"set_auth":       {check: func(l *Limits, op *jobpb.Op) error { return l.CheckAuthSettings(op.GetSetAuth().GetSettings()) }},
	"put_namespace":  {check: func(l *Limits, op *jobpb.Op) error { return l.CheckNamespace(op.GetPutNamespace().GetNamespace()) }},
	"delete_namespace": {check: func(l *Limits, op *jobpb.Op) error {
		return l.CheckNamespaceName("name", op.GetDeleteNamespace().GetName())
	}},
	"import_job":      {since: 2, adds: true, check: func(l *Limits, op *jobpb.Op) error { return l.checkImportJob(op.GetImportJob()) }},
	"follow_log":      {since: 2, leaderOnly: true, check: func(_ *Limits, op *jobpb.Op) error { return checkFollowLog(op.GetFollowLog()) }},
	"promote_standby": {since: 2},

	"put_state_chunk":   {since: 2, leaderOnly: true, check: func(_ *Limits, op *jobpb.Op) error { return checkPutStateChunk(op.GetPutStateChunk()) }},
	"drop_state_chunks": {since: 2, leaderOnly: true},
	"replace_state":     {since: 2, leaderOnly: true},
}

var (
	opDescriptor = (*jobpb.Op)(nil).ProtoReflect().Descriptor()
	opName       = opDescriptor.FullName()
	entryFields  = (*jobpb.Entry)(nil).ProtoReflect().Descriptor().Fields()

	// operationOf has the rows by the number of the field.
	operationOf = byNumber()
	addNumber   = uint64(opDescriptor.Fields().ByName("add").Number())

	// principalNumber is that of the field behind the operation in jobpb.Op.
	principalNumber = opDescriptor.Fields().ByName("principal").Number()

	// The tags of jobpb.Entry, by which an entry is made of encoded operations; each is
	// one byte.
	tagNow   = tagOf(entryFields.ByName("now_ms"), protowire.VarintType)
	tagOp    = tagOf(entryFields.ByName("ops"), protowire.BytesType)
	tagEpoch = tagOf(entryFields.ByName("clock_epoch"), protowire.VarintType)

	tagRoundedDown = tagOf(entryFields.ByName("rounded_down"), protowire.VarintType)
)

func tagOf(f protoreflect.FieldDescriptor, t protowire.Type) byte {
	return byte(protowire.EncodeTag(f.Number(), t))
}

func byNumber() []operation {
	var rows []operation
	for i := range opDescriptor.Fields().Len() {
		f := opDescriptor.Fields().Get(i)
		if f.ContainingOneof() == nil {
			continue // not an operation
		}
		for len(rows) <= int(f.Number()) {
			rows = append(rows, operation{})
		}
		row, found := operations[f.Name()]
		if !found {
			panic(fmt.Sprintf("job/operation.go has no row for the operation %s", f.Name()))
		}
		rows[f.Number()] = row
	}
	return rows
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

// Adds reports whether an operation may make jobs.
func Adds(op *jobpb.Op) bool { return operations[KindOf(op)].adds }

// NeedsAdmin reports whether an operation is about tokens of clients, and so is checked in every
// mode.
func NeedsAdmin(op *jobpb.Op) bool {
	switch op.Kind.(type) {
	case *jobpb.Op_PutToken, *jobpb.Op_DeleteToken, *jobpb.Op_SetAuth:
		return true
	}
	return false
}

// KindOf is the name of an operation's field in jobpb.Op; empty: it has none.
func KindOf(op *jobpb.Op) protoreflect.Name {
	m := op.ProtoReflect()
	if f := m.WhichOneof(m.Descriptor().Oneofs().ByName("kind")); f != nil {
		return f.Name()
	}
	return ""
}

// firstOf returns the first failure.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
