package fsm

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// operation is what an operation does, and what it takes beside that which oplog.Needs and oplog.OnJob
// say, because it depends on the state.
type operation struct {
	do func(*tx, *jobpb.Op, *jobpb.Result) error
	// may refuses it unless its principal may do it, and reports whether it may be done.
	may func(*tx, *jobpb.Op, *jobpb.Result) (bool, error)
}

// does makes what an operation does of a method that takes its message.
func does[K any](get func(*jobpb.Op) K, do func(*tx, K, *jobpb.Result) error) operation {
	return operation{do: func(x *tx, op *jobpb.Op, r *jobpb.Result) error { return do(x, get(op), r) }}
}

func (o operation) onlyIf(may func(*tx, *jobpb.Op, *jobpb.Result) (bool, error)) operation {
	o.may = may
	return o
}

// operations has a row for each operation, by the name of its field in jobpb.Op.
var operations = map[protoreflect.Name]operation{
	"add":        does((*jobpb.Op).GetAdd, (*tx).add).onlyIf(mayUseIDs),
	"atomic_add": does((*jobpb.Op).GetAtomicAdd, (*tx).atomicAdd).onlyIf(mayUseIDs),
	"import_job": does((*jobpb.Op).GetImportJob, (*tx).importJob).onlyIf(mayUseIDs),

	"reserve":     does((*jobpb.Op).GetReserve, (*tx).reserve),
	"reserve_job": does((*jobpb.Op).GetReserveJob, (*tx).reserveJob),
	"finish":      does((*jobpb.Op).GetFinish, (*tx).finish),
	"release":     does((*jobpb.Op).GetRelease, (*tx).release),
	"bury":        does((*jobpb.Op).GetBury, (*tx).bury),
	"touch":       does((*jobpb.Op).GetTouch, (*tx).touchJob),
	"delete":      does((*jobpb.Op).GetDelete, (*tx).delete).onlyIf((*tx).mayDelete),
	"update":      does((*jobpb.Op).GetUpdate, (*tx).update),
	"kick":        does((*jobpb.Op).GetKick, (*tx).kick),

	"kick_topic":    does((*jobpb.Op).GetKickTopic, (*tx).kickTopic),
	"move_jobs":     does((*jobpb.Op).GetMoveJobs, (*tx).moveJobs),
	"release_topic": does((*jobpb.Op).GetReleaseTopic, (*tx).releaseTopic),
	"purge":         does((*jobpb.Op).GetPurge, (*tx).purge),
	"pause_topic":   does((*jobpb.Op).GetPauseTopic, (*tx).pauseTopic),
	"set_topic":     does((*jobpb.Op).GetSetTopic, (*tx).setTopic).onlyIf((*tx).maySetTopic),

	"put_schedule":    does((*jobpb.Op).GetPutSchedule, (*tx).putSchedule).onlyIf((*tx).mayPutSchedule),
	"delete_schedule": does((*jobpb.Op).GetDeleteSchedule, (*tx).deleteSchedule).onlyIf((*tx).mayDeleteSchedule),
	"fire_schedule":   does((*jobpb.Op).GetFireSchedule, (*tx).fireSchedule).onlyIf((*tx).mayFireSchedule),

	"advance":       does((*jobpb.Op).GetAdvance, (*tx).advance),
	"advance_at":    does((*jobpb.Op).GetAdvanceAt, (*tx).advanceAt),
	"reset_clock":   does((*jobpb.Op).GetResetClock, (*tx).resetClock),
	"raise_version": does((*jobpb.Op).GetRaiseVersion, (*tx).raiseVersion),
	"migrate":       does((*jobpb.Op).GetMigrate, (*tx).migrate),

	"put_token":        asAdmin(does((*jobpb.Op).GetPutToken, (*tx).putToken)),
	"delete_token":     asAdmin(does((*jobpb.Op).GetDeleteToken, (*tx).deleteToken)),
	"set_auth":         asAdmin(does((*jobpb.Op).GetSetAuth, (*tx).setAuth)),
	"put_namespace":    does((*jobpb.Op).GetPutNamespace, (*tx).putNamespace).onlyIf(mayChangeNamespaces),
	"delete_namespace": does((*jobpb.Op).GetDeleteNamespace, (*tx).deleteNamespace).onlyIf(mayChangeNamespaces),

	"put_state_chunk":   does((*jobpb.Op).GetPutStateChunk, (*tx).putStateChunk),
	"drop_state_chunks": does((*jobpb.Op).GetDropStateChunks, (*tx).dropStateChunks),
	"replace_state":     does((*jobpb.Op).GetReplaceState, (*tx).replaceState),

	"mark": does((*jobpb.Op).GetMark, func(x *tx, k *jobpb.Mark, _ *jobpb.Result) error {
		x.marks = append(x.marks, k.GetName())
		return nil
	}),
	"set_cluster":    does((*jobpb.Op).GetSetCluster, (*tx).setCluster),
	"forget_member":  does((*jobpb.Op).GetForgetMember, (*tx).forgetMember),
	"admit_node":     does((*jobpb.Op).GetAdmitNode, (*tx).admitNode),
	"put_invitation": does((*jobpb.Op).GetPutInvitation, (*tx).putInvitation),
	"end_invitation": does((*jobpb.Op).GetEndInvitation, (*tx).endInvitation),
	"set_admission": does((*jobpb.Op).GetSetAdmission, func(x *tx, k *jobpb.SetAdmission, _ *jobpb.Result) error {
		return x.setAdmission(k.Mode)
	}),
	"follow_log": does((*jobpb.Op).GetFollowLog, (*tx).followLog),
	"config_log": does((*jobpb.Op).GetConfigLog, (*tx).configLog),
	"promote_standby": does((*jobpb.Op).GetPromoteStandby, func(x *tx, _ *jobpb.PromoteStandby, r *jobpb.Result) error {
		return x.promoteStandby(r)
	}),
}

// operationOf has the rows by the number of the field.
var operationOf = withRights(oplog.ByNumber("fsm/operations.go", operations))

// withRights checks that each row says who may do the operation: nobody may do one of which nothing
// is known.
func withRights(rows []operation) []operation {
	for number, row := range rows {
		if row.do != nil && row.may == nil && !oplog.HasRights(uint64(number)) {
			panic(fmt.Sprintf("neither job/oplog/operation.go nor fsm/operations.go says who may do operation %d", number))
		}
	}
	return rows
}

// rowOf returns the row of an operation; nil: this release does not know it.
func rowOf(op *jobpb.Op) *operation {
	if number := oplog.Number(op); number != 0 {
		return &operationOf[number]
	}
	return nextOperation(op)
}

// do is op for an operation that is valid and allowed.
func (x *tx) do(op *jobpb.Op, r *jobpb.Result) error {
	if row := rowOf(op); row != nil {
		return row.do(x, op, r)
	}
	return errUnknown(op)
}
