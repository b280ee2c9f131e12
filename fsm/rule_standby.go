package fsm

import (
	"fmt"

	"tarry/job"
	"tarry/job/jobpb"
)

// belongs is which log has an operation while a standby follows.
type belongs int

const (
	// toQueue: it is about jobs, or what clients may do with them. A standby does it when its
	// primary did, and refuses it in its own log.
	toQueue belongs = iota + 1
	// toCluster: it is about the nodes of one cluster. A standby has its own, and skips those of
	// its primary.
	toCluster
)

// belonging has a row for each operation, by the name of its field in jobpb.Op. The version is
// that of the records and limits, so it is the primary's: an entry has the same effect on both.
var belonging = map[string]belongs{
	"add": toQueue, "atomic_add": toQueue, "import_job": toQueue, "finish": toQueue, "release": toQueue, "touch": toQueue, "bury": toQueue,
	"kick": toQueue, "delete": toQueue, "update": toQueue, "reserve": toQueue, "reserve_job": toQueue,
	"purge": toQueue, "move_jobs": toQueue, "kick_topic": toQueue, "release_topic": toQueue, "pause_topic": toQueue, "set_topic": toQueue,
	"put_schedule": toQueue, "delete_schedule": toQueue, "fire_schedule": toQueue,
	"advance": toQueue, "advance_at": toQueue, "reset_clock": toQueue,
	"raise_version": toQueue, "migrate": toQueue,
	"put_token": toQueue, "delete_token": toQueue, "set_auth": toQueue, "put_namespace": toQueue, "delete_namespace": toQueue,

	"put_state_chunk": toQueue, "drop_state_chunks": toQueue, "replace_state": toQueue,

	"mark": toCluster, "set_cluster": toCluster, "forget_member": toCluster, "admit_node": toCluster,
	"put_invitation": toCluster, "end_invitation": toCluster, "set_admission": toCluster,
	"follow_log": toCluster, "promote_standby": toCluster,
}

var belongingOf = belongingByNumber()

func belongingByNumber() []belongs {
	var rows []belongs
	fields := (*jobpb.Op)(nil).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range fields.Len() {
		row, found := belonging[string(fields.Get(i).Name())]
		if !found {
			panic(fmt.Sprintf("fsm/rule_standby.go has no row for the operation %s", fields.Get(i).Name()))
		}
		for len(rows) <= int(fields.Get(i).Number()) {
			rows = append(rows, toQueue)
		}
		rows[fields.Get(i).Number()] = row
	}
	return rows
}

// TakenByStandby reports whether a standby does an operation of its own log, not of its
// primary's.
func TakenByStandby(op *jobpb.Op) bool { return belonging[string(job.KindOf(op))] == toCluster }

// offStandby reports whether a standby does not do the operation with this number. In that case
// r says why.
func (x *tx) offStandby(number uint64, r *jobpb.Result) bool {
	row := toQueue
	if number < uint64(len(belongingOf)) {
		row = belongingOf[number]
	}
	if x.followed {
		return row == toCluster
	}
	if row == toCluster {
		return false
	}
	_ = x.refuse(r, jobpb.Code_STANDBY, "%s", RefusedByStandby)
	return true
}

// RefusedByStandby is the message of what a standby refuses.
const RefusedByStandby = "this cluster is a standby: it only follows its primary, and can be read; send this to the primary, or end the mode with \"tarry standby promote\""
