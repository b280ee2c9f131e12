package api

import (
	"reflect"

	"tarry/api/wire"
)

// requests are what calls decode their requests into.
var requests = map[string]reflect.Type{
	"AddRequest":          reflect.TypeFor[wire.AddRequest](),
	"AddBatch":            reflect.TypeFor[wire.AddBatch](),
	"UpdateRequest":       reflect.TypeFor[wire.UpdateRequest](),
	"ReserveRequest":      reflect.TypeFor[wire.ReserveRequest](),
	"FinishItem":          reflect.TypeFor[wire.FinishItem](),
	"StreamRequest":       reflect.TypeFor[wire.StreamRequest](),
	"FinishRequest":       reflect.TypeFor[wire.FinishBody](),
	"ReleaseRequest":      reflect.TypeFor[wire.ChangeItem](),
	"TouchRequest":        reflect.TypeFor[wire.ChangeItem](),
	"BuryRequest":         reflect.TypeFor[wire.ChangeItem](),
	"KickRequest":         reflect.TypeFor[wire.ChangeItem](),
	"MoveRequest":         reflect.TypeFor[wire.ChangeItem](),
	"ChangeItem":          reflect.TypeFor[wire.ChangeItem](),
	"ChangeBatch":         reflect.TypeFor[wire.Batch[wire.ChangeItem]](),
	"GetRequest":          reflect.TypeFor[wire.GetRequest](),
	"UpdateItem":          reflect.TypeFor[wire.UpdateItem](),
	"UpdateBatch":         reflect.TypeFor[wire.Batch[wire.UpdateItem]](),
	"CommandRequest":      reflect.TypeFor[wire.CommandRequest](),
	"KickDeadRequest":     reflect.TypeFor[wire.KickDeadRequest](),
	"PurgeDeadRequest":    reflect.TypeFor[wire.PurgeDeadRequest](),
	"KickTopicRequest":    reflect.TypeFor[wire.KickTopicRequest](),
	"ReleaseTopicRequest": reflect.TypeFor[wire.ReleaseTopicRequest](),
	"RescheduleRequest":   reflect.TypeFor[wire.RescheduleRequest](),
	"PurgeRequest":        reflect.TypeFor[wire.PurgeRequest](),
	"MoveTopicRequest":    reflect.TypeFor[wire.MoveTopicRequest](),
	"PauseRequest":        reflect.TypeFor[wire.PauseRequest](),
	"Filter":              reflect.TypeFor[wire.Filter](),
	"PreviewRequest":      reflect.TypeFor[wire.PreviewRequest](),
	"ScheduleRequest":     reflect.TypeFor[wire.ScheduleRequest](),
	"Rule":                reflect.TypeFor[wire.RuleRequest](),
	"TokenLimits":         reflect.TypeFor[wire.LimitsRequest](),
	"TokenRequest":        reflect.TypeFor[wire.TokenRequest](),
	"RotateRequest":       reflect.TypeFor[wire.RotateRequest](),
	"NamespaceRequest":    reflect.TypeFor[wire.NamespaceRequest](),
	"Quotas":              reflect.TypeFor[wire.Quotas](),
	"AuthRequest":         reflect.TypeFor[wire.AuthRequest](),
	"AdmissionRequest":    reflect.TypeFor[wire.AdmissionRequest](),
	"LogLevelRequest":     reflect.TypeFor[wire.LogLevelRequest](),
	"InvitationRequest":   reflect.TypeFor[wire.InvitationRequest](),
	"BootstrapRequest":    reflect.TypeFor[wire.BootstrapRequest](),
	"RunRequest":          reflect.TypeFor[wire.RunRequest](),
	"JoinRequest":         reflect.TypeFor[wire.JoinRequest](),
	"TransferRequest":     reflect.TypeFor[wire.TransferRequest](),
}

// failedItem has the fields of an item that failed.
const failedItem = "code? error? field? outcome?"

// replies are the objects that calls give, as describer.shape reads them.
var replies = map[string]string{
	"Done":        "success:bool",
	"Description": "openapi",
	"Error":       "success:bool code error field? outcome? id? value?:any ready?:bool reasons?:[]string warnings?:[]string leader?",

	"Added":         "success:bool id seq:int state due_at?:time revision:int existing:bool ended?:bool replaced?:bool postponed?:bool",
	"AddResult":     "success:bool id? seq?:int state? due_at?:time revision?:int existing?:bool ended?:bool replaced?:bool postponed?:bool " + failedItem,
	"AddResults":    "success:bool results:[]AddResult",
	"Changed":       "success:bool id seq:int state revision?:int due_at?:time reserved_until?:time",
	"ChangeResult":  "success:bool id? seq?:int state? revision?:int due_at?:time reserved_until?:time " + failedItem,
	"ChangeResults": "success:bool results:[]ChangeResult",
	"GetResults":    "success:bool results:[]GetResult",
	"Finished":      "success:bool id? seq?:int state? revision?:int due_at?:time reserved_until?:time results?:[]AddResult",
	"JobPage":       "success:bool jobs:[]Job next? incomplete?:bool",
	"UpdatedJobs":   "success:bool updated:int skipped?:int reason? incomplete?:bool more?:bool next?",
	"DeletedJobs":   "success:bool deleted:int skipped?:int reason? incomplete?:bool more?:bool next?",
	"KickedJobs":    "success:bool kicked:int skipped?:int reason? incomplete?:bool more?:bool next?",
	"Backoff":       "delays?:[]seconds base?:seconds factor?:num max?:seconds jitter?:num",
	"History":       "success:bool id seq:int topic state events:[]Event dropped:int",
	"Event":         "at:time event state attempt?:int due_at?:time consumer? reason?",
	"Explanation":   "success:bool id seq:int topic state due_at?:time late:seconds text causes:[]Cause",
	"Cause":         "cause late?:seconds until?:time at?:time count?:int text",

	"ReservedJobs": "success:bool finished?:[]ChangeResult jobs:[]Reserved",
	"Reserved":     "id seq:int topic token attempts:int priority:int due_at:time reserved_until:time ttr:seconds headers?:headers push_url? body?:any body_base64?",
	"CommandReply": "success:bool error id value?:any value_base64? token? jobs?:[]Popped",
	"Popped":       "id value?:any value_base64? token",

	"Stats":              "success:bool topics:int delayed:int ready:int reserved:int dead:int retained:int",
	"Topic":              topicShape,
	"TopicReply":         "success:bool " + topicShape,
	"TopicPage":          "success:bool topics:[]Topic next?",
	"Rates":              "success:bool topic? start?:time step:seconds added:[]int delivered:[]int finished:[]int deleted:[]int timeouts:[]int died:[]int expired:[]int",
	"Forecast":           "success:bool topic? start:time step:seconds jobs:[]int before:int after:int overdue:int",
	"DueTopics":          "success:bool start:time step:seconds jobs:int topics:[]DueTopic",
	"DueTopic":           "topic jobs:int",
	"DeadReasons":        "success:bool topic? jobs:int reasons?:int groups:[]DeadReason more?:bool incomplete?:bool",
	"DeadReason":         "reason jobs:int topics?:int example first_died_at?:time",
	"DeadTopics":         "success:bool reason jobs:int topics:int groups:[]DeadTopic more?:bool incomplete?:bool",
	"DeadTopic":          "topic jobs:int example first_died_at?:time",
	"Kicked":             "success:bool kicked:int more?:bool",
	"Released":           "success:bool released:int more?:bool",
	"Rescheduled":        "success:bool rescheduled:int unchanged?:int skipped?:int reason? more?:bool next?",
	"Purged":             "success:bool deleted:int more?:bool",
	"Moved":              "success:bool moved:int skipped?:int reason? more?:bool next?",
	"Pause":              "success:bool topic paused:bool paused_until?:time",
	"TopicSettings":      "topic revision:int settings:Settings",
	"TopicSettingsReply": "success:bool topic revision:int settings:Settings",
	"TopicSettingsPage":  "success:bool topics:[]TopicSettings next?",
	"Push":               "url? has_secret:bool timeout?:seconds concurrency?:int job_urls?:bool",
	"PushRequest":        "url? secret? timeout?:seconds concurrency?:int job_urls?:bool",

	"Schedule":        scheduleShape,
	"ScheduleReply":   "success:bool " + scheduleShape,
	"SchedulePage":    "success:bool schedules:[]Schedule next?",
	"ScheduleCounts":  "started:int skipped:int missed:int refused:int",
	"ScheduleJob":     "topic priority:int ttr?:seconds max_attempts?:int backoff?:Backoff headers?:headers push_url? body?:any body_base64?",
	"SchedulePut":     "success:bool schedule revision:int existing:bool replaced?:bool",
	"SchedulePause":   "success:bool schedule revision:int paused:bool",
	"ScheduleDeleted": "success:bool schedule",
	"Preview":         "success:bool runs:[]PlannedRun",
	"PlannedRun":      "planned_at:time local",
	"Runs":            "success:bool runs:[]Run",
	"Run":             "planned_at?:time at:time outcome now?:bool count?:int id? seq?:int code?",

	"Members":       "success:bool members:[]Member admission?",
	"RemovedNodes":  "success:bool removed:[]RemovedNode",
	"RemovedNode":   "id removed_at:time",
	"Admission":     "success:bool mode",
	"Invitations":   "success:bool invitations:[]Invitation",
	"Invitation":    "id node? created_at:time expires_at:time expired?:bool used_by? used_at?:time",
	"Invited":       "success:bool id invitation node? expires_at:time",
	"Uninvited":     "success:bool id",
	"Member":        "id address http_address role voter:bool non_voter?:bool alive:bool draining?:bool applied_index:int lag:int disk_free?:int disk_low?:bool version cluster_version:int min_cluster_version:int max_cluster_version:int",
	"Health":        "success:bool healthy:bool severity failure_tolerance:num reasons:[]string problems:[]Problem cluster_version:int upgrade",
	"Problem":       "severity reason kind unhealthy:bool node? at?:time",
	"ClusterEvents": "success:bool node started_at?:time events:[]ClusterEvent",
	"ClusterEvent":  "number:int at:time kind level event details:headers",
	"NodeLog":       "success:bool node lines:[]string",
	"LogLevel":      "success:bool node level",
	"Node":          "success:bool id release revision go platform started_at?:time draining:bool store_format:int wire_version:int backup_format:int min_cluster_version:int max_cluster_version:int settings:[]NodeSetting",
	"NodeSetting":   "name value hidden?:bool",
	"Clocks":        "success:bool max_offset:seconds agreed:bool majority?:time cluster_ahead?:seconds clocks:[]Clock",
	"Clock":         "id voter:bool answered:bool offset?:seconds within?:seconds off:bool",
	"Verification":  "success:bool equal:bool index:int digests:[]Digest",
	"Digest":        "id digest error?",
	"Transfer":      "success:bool moved:bool",
	"Readiness":     "success:bool code? error? ready:bool reasons:[]string warnings:[]string leader",

	"ScheduledBackups": "success:bool backups:[]ScheduledBackup nodes:[]NodeBackups",
	"ScheduledBackup":  "name index:int planned_at:time taken_at?:time bytes:int base? verified:bool problem? nodes:[]string",
	"NodeBackups":      "id scheduled:bool more:int error?",

	"Keyring":      "success:bool revision:int keys:[]string changed? current:int nodes:[]NodeKeys",
	"NodeKeys":     "id revision:int keys:[]string error?",
	"WhoAmI":       "success:bool mode id? description? rules:[]Rule id_prefix? limits?:TokenLimits expires_at?:time",
	"Token":        tokenShape,
	"TokenReply":   "success:bool " + tokenShape,
	"TokenPage":    "success:bool tokens:[]Token next?",
	"TokenPut":     "success:bool id revision:int token?",
	"TokenDeleted": "success:bool id",
	"Rule":         "topics:[]string verbs:[]string",
	"SecretKeys":   "success:bool keys:[]SecretKey plain:int",
	"SecretKey":    "id topics:int held:bool seals?:bool",
	"Rewrapped":    "success:bool rewrapped:int unchanged:int failed:int reason?",
	"TokenLimits":  "rate?:num connections?:int waiters?:int bytes?:int",
	"Auth":         "success:bool mode anonymous:[]Rule revision:int tokens:int bootstrapped:bool",
	"AuthPut":      "success:bool mode revision:int",

	"Namespaces":       "success:bool namespaces:[]Namespace",
	"Namespace":        namespaceShape,
	"NamespaceReply":   "success:bool " + namespaceShape,
	"NamespacePut":     "success:bool name revision:int existing:bool",
	"NamespaceDeleted": "success:bool name",
	"NamespaceUse":     "jobs:int bytes:int topics:int",
	"NamespaceQuotas":  "jobs?:int bytes?:int topics?:int rate?:num",
}

const (
	tokenShape     = "id revision:int description? rules:[]Rule id_prefix? limits?:TokenLimits expires_at?:time created_at:time old_until?:time"
	namespaceShape = "name revision:int topic_prefix id_prefix? description? quotas:NamespaceQuotas use:NamespaceUse"
	topicShape     = "topic delayed:int ready:int reserved:int dead:int retained?:int oldest_due_at?:time paused:bool paused_until?:time throttled_until?:time" +
		" added:int finished:int deleted:int timeouts:int died:int expired?:int settings_revision?:int"
	scheduleShape = "schedule revision:int spec zone start?:time end?:time jitter:seconds overlap missed missed_max?:int missed_after:seconds" +
		" paused:bool trouble? next_at?:time created_at:time changed_at:time counts:ScheduleCounts job:ScheduleJob"
)

// queryTypes are the types of query parameters that are not text.
var queryTypes = map[string]string{
	"max": "int", "count": "int", "credit": "int", "from": "int", "if_revision": "int", "step": "step", "steps": "int", "all": "bool", "ttr": "num", "heartbeat": "num", "body": "bool", "from_now": "bool", "dry_run": "bool",
}
