package wire

type AdmissionRequest struct {
	Mode Opt[string] `json:"mode" required:"mode" help:"What a node needs to become a member: no more than to find the cluster, or a certificate or an invitation." limit:"admission"`
}

type InvitationRequest struct {
	Node      Opt[string]  `json:"node" help:"The name of the node that may use it, up to 200 bytes; any node if it is left out." limit:"name"`
	ExpiresIn Opt[float64] `json:"expires_in" help:"For how long it is valid, in seconds; 3600 unless given." limit:"invitation"`
}

// MaxJoinAddresses bounds the addresses of one join.
const MaxJoinAddresses = 100

type TransferRequest struct {
	ID Opt[string] `json:"id" help:"The node that leads from then on; the best follower unless given."`
}

type JoinRequest struct {
	Addresses List[string, AddressLimit] `json:"addresses" required:"addresses" help:"Gossip addresses of the cluster's nodes, host:port, 1 to 100."`
}

type LogLevelRequest struct {
	Level Opt[string] `json:"level" required:"level" help:"The lowest level to log." limit:"level"`
}

type PromoteRequest struct {
	Force Opt[bool] `json:"force" help:"Promote it although the primary still sends its log."`
}

type Members struct {
	Members   []Member `json:"members" help:"The nodes of the cluster."`
	Admission string   `json:"admission,omitzero" help:"What a node needs to become a member." limit:"admission"`
}

type Shards struct {
	Shards uint64  `json:"shards" help:"How many shards the cluster has."`
	Groups []Group `json:"groups" help:"The Raft groups, by their numbers."`
}

type Group struct {
	Group   uint64  `json:"group" help:"The number of the group."`
	Shard   *uint64 `json:"shard,omitzero" help:"The number of its shard, from 0 on; absent: it has no jobs, but the members and settings of a cluster with several shards."`
	Leader  string  `json:"leader,omitzero" help:"The node that leads it; absent: this node knows none."`
	Address string  `json:"address,omitzero" help:"Where clients reach that node, host:port; absent: this node does not know it."`
	Term    uint64  `json:"term,omitzero" help:"The term of the leader, as this node knows it."`
}

type RemovedNodes struct {
	Removed []RemovedNode `json:"removed" help:"The nodes that were removed, by name."`
}

type RemovedNode struct {
	ID        string `json:"id" help:"The name of the node."`
	RemovedAt Time   `json:"removed_at" help:"When the node was removed."`
}

type Admission struct {
	Mode string `json:"mode" help:"What a node needs to become a member." limit:"admission"`
}

type Invitations struct {
	Invitations []Invitation `json:"invitations" help:"The invitations, by their ids."`
}

type Invitation struct {
	ID        string `json:"id" help:"The id of the invitation."`
	Node      string `json:"node,omitzero" help:"The name of the node that may use it; absent: any node."`
	CreatedAt Time   `json:"created_at" help:"When it was made."`
	ExpiresAt Time   `json:"expires_at" help:"When it ends."`
	Expired   bool   `json:"expired,omitzero" help:"Whether it has ended. It is listed until the next one is made."`
	UsedBy    string `json:"used_by,omitzero" help:"The server that has used it: the name of the node, a dot and the incarnation of its data."`
	UsedAt    Time   `json:"used_at,omitzero" help:"When that was."`
}

type Invited struct {
	ID         string `json:"id" help:"The id of the invitation."`
	Invitation string `json:"invitation" help:"The text of the invitation, for --join-invitation-file of the node. It is shown this once."`
	Node       string `json:"node,omitzero" help:"The name of the node that may use it; absent: any node."`
	ExpiresAt  Time   `json:"expires_at" help:"When it ends."`
}

type Uninvited struct {
	ID string `json:"id" help:"The id of the invitation."`
}

type Member struct {
	ID                string `json:"id" help:"The name of the node."`
	Address           string `json:"address" help:"Where other nodes reach it, host:port."`
	HTTPAddress       string `json:"http_address" help:"Where clients reach it, host:port."`
	Role              string `json:"role" help:"leader, follower or another of Raft's."`
	Voter             bool   `json:"voter"`
	NonVoter          bool   `json:"non_voter,omitzero" help:"It was started with --non-voter, so it never will; absent if not, and while it is not alive."`
	Alive             bool   `json:"alive" help:"Whether it answers."`
	Draining          bool   `json:"draining,omitzero" help:"It is drained, or about to stop: it does not lead, and clients should use other nodes; absent if not."`
	AppliedIndex      uint64 `json:"applied_index" help:"How far it has applied the log."`
	Lag               uint64 `json:"lag" help:"Log entries that it is behind the leader."`
	DiskFree          uint64 `json:"disk_free,omitzero" help:"The free bytes of the disk of its data directory; absent while it does not answer."`
	DiskLow           bool   `json:"disk_low,omitzero" help:"Whether that is below its --disk-low-water, so that adds are refused or soon will be."`
	Version           string `json:"version" help:"The release that it runs."`
	ClusterVersion    uint64 `json:"cluster_version"`
	MinClusterVersion uint64 `json:"min_cluster_version"`
	MaxClusterVersion uint64 `json:"max_cluster_version"`
}

type Health struct {
	Healthy          bool      `json:"healthy" help:"Whether all works, and as many nodes may fail as should: problems that are only to be solved in time do not count."`
	FailureTolerance float64   `json:"failure_tolerance" help:"How many nodes can fail; negative: so many are missing."`
	Severity         string    `json:"severity" help:"How bad it is: critical means that clients are affected now. The alerts use the same words." of:"none warning critical"`
	Reasons          []string  `json:"reasons"`
	Problems         []Problem `json:"problems" help:"What is wrong, or soon will be, with how bad it is."`
	ClusterVersion   uint64    `json:"cluster_version"`
	Upgrade          string    `json:"upgrade" help:"What keeps the cluster version from being raised."`
}

type Problem struct {
	Severity  string `json:"severity" help:"How bad it is." of:"warning critical"`
	Reason    string `json:"reason" help:"What is wrong."`
	Kind      string `json:"kind" help:"What it is about, such as node_down."`
	Unhealthy bool   `json:"unhealthy" help:"Whether the cluster is not healthy because of it; otherwise all works, and something is to be done in time."`
	Node      string `json:"node,omitzero" help:"The node that it is about; absent if it is about no single one."`
	At        Time   `json:"at,omitzero" help:"The instant that it is about, such as the end of a certificate; absent if there is none."`
}

type ClusterEvents struct {
	Node      string         `json:"node"`
	StartedAt Time           `json:"started_at,omitzero"`
	Events    []ClusterEvent `json:"events" help:"What the node has seen, oldest first: the last 1000 since it started."`
}

type ClusterEvent struct {
	Number  uint64            `json:"number" help:"The number of the event on this node, from 1 since it started."`
	At      Time              `json:"at"`
	Kind    string            `json:"kind" help:"What it is about, such as member, leader, clock or disk."`
	Level   string            `json:"level" help:"How the node logged it." of:"info warn error"`
	Event   string            `json:"event" help:"What happened: the message of a line of the log."`
	Details map[string]string `json:"details" help:"What the line says beside the message."`
}

type Clocks struct {
	MaxOffset    Seconds  `json:"max_offset" help:"By how much a clock may be off, in seconds." limit:"positive"`
	Agreed       bool     `json:"agreed" help:"Whether the clocks of a majority agree."`
	Majority     Time     `json:"majority,omitzero" help:"The time of the majority."`
	ClusterAhead *Seconds `json:"cluster_ahead,omitzero" help:"By how much the queue's clock is ahead of the majority's, in seconds."`
	Clocks       []Clock  `json:"clocks" help:"The clocks of the nodes."`
}

type Clock struct {
	ID       string   `json:"id" help:"The name of the node."`
	Voter    bool     `json:"voter"`
	Answered bool     `json:"answered" help:"Whether the node told its time."`
	Offset   *Seconds `json:"offset,omitzero" help:"By how much its clock is ahead of the majority's, in seconds."`
	Within   *Seconds `json:"within,omitzero" help:"The error of that measurement, in seconds." limit:"positive"`
	Off      bool     `json:"off" help:"Whether its clock is wrong."`
}

type Verification struct {
	Equal   bool     `json:"equal" help:"Whether all nodes that answered have the same state."`
	Index   uint64   `json:"index" help:"The log index at which the states were compared."`
	Digests []Digest `json:"digests" help:"The digests of the nodes."`
}

type Digest struct {
	ID     string `json:"id" help:"The name of the node."`
	Digest string `json:"digest" help:"A hash of the node's state."`
	Error  string `json:"error,omitzero" help:"Why the node gave no digest."`
}

type Transfer struct {
	Moved bool `json:"moved" help:"Whether leadership moved; it does not if the node leads already."`
}

type ScheduledBackups struct {
	Backups []ScheduledBackup `json:"backups" help:"The backups, the newest first."`
	Nodes   []NodeBackups     `json:"nodes" help:"What each node replied."`
}

type ScheduledBackup struct {
	Name      string   `json:"name" help:"The name of the file or object in --backup-dir."`
	Index     uint64   `json:"index" help:"The entry of the log up to which it has everything."`
	PlannedAt Time     `json:"planned_at" help:"The instant of the schedule."`
	TakenAt   Time     `json:"taken_at,omitzero" help:"When it was made, by the clock of the node that made it; absent if its header cannot be read."`
	Bytes     uint64   `json:"bytes" help:"The size of the file."`
	Base      string   `json:"base,omitzero" help:"The file that it builds on, if it is incremental."`
	Verified  bool     `json:"verified" help:"Whether it was read back when it was made, and still has its beginning and its end, as have those that it builds on."`
	Problem   string   `json:"problem,omitzero" help:"Why it cannot be restored."`
	Nodes     []string `json:"nodes" help:"The nodes in whose directory it is."`
}

type NodeBackups struct {
	ID        string `json:"id" help:"The name of the node."`
	Scheduled bool   `json:"scheduled" help:"Whether the node has a --backup-schedule."`
	More      uint64 `json:"more" help:"Older backups that it has and that are not listed: a node lists 1000."`
	Error     string `json:"error,omitzero" help:"Why it did not reply, or cannot use its directory."`
}

type Keyring struct {
	Revision uint64     `json:"revision" help:"How often the keys were changed."`
	Keys     []string   `json:"keys" help:"The fingerprints of the leader's keys, the first one encrypts; empty: gossip is in plain text."`
	Changed  string     `json:"changed,omitzero" help:"The fingerprint of the key that was installed, used or removed."`
	Current  uint64     `json:"current" help:"How many nodes have the keys of the leader."`
	Nodes    []NodeKeys `json:"nodes" help:"The keys of each node."`
}

type NodeKeys struct {
	ID       string   `json:"id" help:"The name of the node."`
	Revision uint64   `json:"revision" help:"The revision of its keys; 0: as its operator has written them, or it did not reply."`
	Keys     []string `json:"keys" help:"The fingerprints of its keys, the first one encrypts; empty: it has none, or did not reply."`
	Error    string   `json:"error,omitzero" help:"Why the node did not reply, or did not take the change."`
}

type Standby struct {
	Mode          string  `json:"mode" help:"Whether the cluster never was a standby, follows its primary, or was promoted." limit:"standby"`
	Primary       string  `json:"primary,omitzero" help:"The id of the cluster that it follows, or followed."`
	Index         uint64  `json:"index,omitzero" help:"The last entry of the primary's log whose effects are here."`
	Term          uint64  `json:"term,omitzero" help:"The term of that entry."`
	PrimaryIndex  uint64  `json:"primary_index,omitzero" help:"How far the primary was at the last contact."`
	LagEntries    uint64  `json:"lag_entries,omitzero" help:"Entries of the primary's log that it had at the last contact and that are not here."`
	LagSeconds    Seconds `json:"lag_seconds,omitzero" help:"How long ago it last had everything: what the primary acknowledged since may be missing. After a promotion it is what it was then. Absent while it is not known."`
	LastContactAt Time    `json:"last_contact_at,omitzero" help:"When a node of the primary last said how far it is."`
	CaughtUpAt    Time    `json:"caught_up_at,omitzero" help:"The last instant up to which everything that the primary had applied is here."`
	PromotedAt    Time    `json:"promoted_at,omitzero" help:"When it was promoted."`
	Connected     bool    `json:"connected,omitzero" help:"Whether a node of the primary sends its log."`
	Source        string  `json:"source,omitzero" help:"The address of that node."`
	Problem       string  `json:"problem,omitzero" help:"Why it does not follow."`
	Reseed        bool    `json:"reseed,omitzero" help:"It must be made again from a backup of the primary; absent if not."`
}

type Restored struct {
	DryRun        bool           `json:"dry_run" help:"Whether nothing was changed."`
	Index         uint64         `json:"index" help:"The entry of the log from which on the cluster has the state of the backup; 0 for a dry run."`
	BackupCluster string         `json:"backup_cluster" help:"The id of the cluster that was backed up."`
	BackupIndex   uint64         `json:"backup_index" help:"The entry of that cluster's log at which it was backed up."`
	BackupAt      Time           `json:"backup_at" help:"The time of that cluster's clock then."`
	Shift         Seconds        `json:"shift" help:"By how much delays are longer."`
	Before        RestoredCounts `json:"before" help:"What the cluster had."`
	After         RestoredCounts `json:"after" help:"What it has afterwards, with reservations ended."`
	Tokens        uint64         `json:"tokens" help:"How many tokens there are afterwards."`
}

type RestoredCounts struct {
	Topics   uint64 `json:"topics" help:"Topics."`
	Delayed  uint64 `json:"delayed"`
	Ready    uint64 `json:"ready"`
	Reserved uint64 `json:"reserved"`
	Dead     uint64 `json:"dead"`
	Retained uint64 `json:"retained"`
}
