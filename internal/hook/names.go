package hook

// The points of the write path, in the order in which an entry passes them. Each "before"
// comes before the step begins, each "after" when it is done, but before any reply.
const (
	BeforeLogStore   = "before-log-store" // append to the Raft log, with its sync
	AfterLogStore    = "after-log-store"
	BeforeApply      = "before-apply" // a batch of committed entries into the state
	AfterApply       = "after-apply"
	BeforeFlush      = "before-flush" // the sync that lets the log be truncated
	AfterFlush       = "after-flush"
	BeforeLogDelete  = "before-log-delete" // truncation of the Raft log, at either end
	AfterLogDelete   = "after-log-delete"
	BeforeCheckpoint = "before-checkpoint" // of the state, to send it to a follower
	AfterCheckpoint  = "after-checkpoint"
	BeforeSwap       = "before-swap" // of the state for one that was received
	AfterSwap        = "after-swap"
)

// Points returns all of them.
func Points() []string {
	return []string{
		BeforeLogStore, AfterLogStore, BeforeApply, AfterApply, BeforeFlush, AfterFlush,
		BeforeLogDelete, AfterLogDelete, BeforeCheckpoint, AfterCheckpoint, BeforeSwap, AfterSwap,
	}
}

// The mutants. All nodes of a cluster must be the same one.
const (
	DropAdd      = "drop-add"       // some adds are acknowledged and forgotten
	DeliverEarly = "deliver-early"  // some jobs fall due too early
	DeliverLate  = "deliver-late"   // some jobs fall due too late
	HandOutTwice = "hand-out-twice" // some reserved jobs are handed to another consumer too
	ForgetDelete = "forget-delete"  // some deletes and finishes are acknowledged and not done
	SkipFsync    = "skip-fsync"     // the Raft log is not synced

	HalfBatch       = "half-batch"       // some all-or-nothing calls add half of their jobs
	ForgetPostpone  = "forget-postpone"  // some adds that postpone a job leave its due instant
	IgnoreCondition = "ignore-condition" // changes ignore their condition
	FinishUnposted  = "finish-unposted"  // some jobs of a topic with a target are finished and not posted
	ForgetHeader    = "forget-header"    // some jobs are not found by their headers
	DropImport      = "drop-import"      // some imported jobs are acknowledged and forgotten
	ForgetAttempts  = "forget-attempts"  // imported jobs lose the attempts that they had
	ForgetQuota     = "forget-quota"     // namespaces have no quotas
	HalveQuota      = "halve-quota"      // namespaces have half of the room that was asked for
	StaleRead       = "stale-read"       // consistent reads return the local state of the node
	ForgetRevoke    = "forget-revoke"    // tokens that were revoked go on being accepted
	AnyAuthority    = "any-authority"    // nodes accept certificates of an authority that they do not trust
	KeepKey         = "keep-key"         // gossip keys that were removed remain
)

// Mutants returns all of them.
func Mutants() []string {
	return []string{
		DropAdd, DeliverEarly, DeliverLate, HandOutTwice, ForgetDelete, SkipFsync,
		HalfBatch, ForgetPostpone, IgnoreCondition, FinishUnposted, ForgetHeader, DropImport, ForgetAttempts, ForgetQuota, HalveQuota, StaleRead, ForgetRevoke, AnyAuthority, KeepKey,
	}
}
