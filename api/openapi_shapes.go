package api

import "reflect"

// requests are what calls decode their requests into.
var requests = map[string]reflect.Type{
	"AddRequest":       reflect.TypeFor[addRequest](),
	"AddBatch":         reflect.TypeFor[addBatchRequest](),
	"UpdateRequest":    reflect.TypeFor[updateRequest](),
	"ReserveRequest":   reflect.TypeFor[reserveRequest](),
	"StreamRequest":    reflect.TypeFor[streamRequest](),
	"FinishRequest":    reflect.TypeFor[finishRequest](),
	"ReleaseRequest":   reflect.TypeFor[changeRequest](),
	"TouchRequest":     reflect.TypeFor[changeRequest](),
	"BuryRequest":      reflect.TypeFor[changeRequest](),
	"KickRequest":      reflect.TypeFor[changeRequest](),
	"MoveRequest":      reflect.TypeFor[changeRequest](),
	"ChangeItem":       reflect.TypeFor[changeRequest](),
	"ChangeBatch":      reflect.TypeFor[batch[changeRequest]](),
	"CommandRequest":   reflect.TypeFor[commandRequest](),
	"KickTopicRequest": reflect.TypeFor[kickTopicRequest](),
	"PurgeRequest":     reflect.TypeFor[purgeRequest](),
	"MoveTopicRequest": reflect.TypeFor[moveTopicRequest](),
	"PauseRequest":     reflect.TypeFor[pauseRequest](),
	"Filter":           reflect.TypeFor[filterRequest](),
	"PreviewRequest":   reflect.TypeFor[previewRequest](),
	"ScheduleRequest":  reflect.TypeFor[scheduleRequest](),
	"RunRequest":       reflect.TypeFor[runRequest](),
	"JoinRequest":      reflect.TypeFor[joinRequest](),
	"TransferRequest":  reflect.TypeFor[transferRequest](),
}

// replies are the objects that calls give, as describer.shape reads them.
var replies = map[string]string{
	"Done":        "success:bool",
	"Description": "openapi",
	"Error":       "success:bool code error field? outcome? id? value?:any ready?:bool reasons?:[]string warnings?:[]string leader?",

	"Added":         "success:bool id seq:int state due_at?:time revision:int existing:bool replaced?:bool postponed?:bool",
	"AddResult":     "success:bool id? seq?:int state? due_at?:time revision?:int existing?:bool replaced?:bool postponed?:bool code? error? field? outcome?",
	"AddResults":    "success:bool results:[]AddResult",
	"Changed":       "success:bool id seq:int state revision?:int due_at?:time reserved_until?:time",
	"ChangeResult":  "success:bool id? seq?:int state? revision?:int due_at?:time reserved_until?:time code? error? field? outcome?",
	"ChangeResults": "success:bool results:[]ChangeResult",
	"Finished":      "success:bool id? seq?:int state? revision?:int due_at?:time reserved_until?:time results?:[]AddResult",
	"JobPage":       "success:bool jobs:[]Job next? incomplete?:bool",
	"UpdatedJobs":   "success:bool updated:int skipped?:int reason? incomplete?:bool more?:bool next?",
	"DeletedJobs":   "success:bool deleted:int skipped?:int reason? incomplete?:bool more?:bool next?",
	"KickedJobs":    "success:bool kicked:int skipped?:int reason? incomplete?:bool more?:bool next?",
	"Backoff":       "delays?:[]seconds base?:seconds factor?:num max?:seconds jitter?:num",
	"History":       "success:bool id seq:int topic state events:[]Event dropped:int",
	"Event":         "at:time event state attempt?:int due_at?:time consumer? reason?",
	"Explanation":   "success:bool id seq:int topic state due_at?:time late:seconds text causes:[]Cause",
	"Cause":         "cause late?:seconds until?:time count?:int text",

	"ReservedJobs": "success:bool jobs:[]Reserved",
	"Reserved":     "id seq:int topic token attempts:int priority:int due_at:time reserved_until:time ttr:seconds headers?:headers body?:any body_base64?",
	"CommandReply": "success:bool error id value?:any value_base64? token? jobs?:[]Popped",
	"Popped":       "id value?:any value_base64? token",

	"Stats":              "success:bool topics:int delayed:int ready:int reserved:int dead:int retained:int",
	"Topic":              topicShape,
	"TopicReply":         "success:bool " + topicShape,
	"TopicPage":          "success:bool topics:[]Topic next?",
	"Kicked":             "success:bool kicked:int more?:bool",
	"Purged":             "success:bool deleted:int more?:bool",
	"Moved":              "success:bool moved:int more?:bool",
	"Pause":              "success:bool topic paused:bool paused_until?:time",
	"TopicSettings":      "topic revision:int settings:Settings",
	"TopicSettingsReply": "success:bool topic revision:int settings:Settings",
	"TopicSettingsPage":  "success:bool topics:[]TopicSettings next?",
	"Push":               "url has_secret:bool timeout?:seconds concurrency?:int",
	"PushRequest":        "url secret? timeout?:seconds concurrency?:int",

	"Schedule":        scheduleShape,
	"ScheduleReply":   "success:bool " + scheduleShape,
	"SchedulePage":    "success:bool schedules:[]Schedule next?",
	"ScheduleCounts":  "started:int skipped:int missed:int refused:int",
	"ScheduleJob":     "topic priority:int ttr?:seconds max_attempts?:int backoff?:Backoff headers?:headers body?:any body_base64?",
	"SchedulePut":     "success:bool schedule revision:int existing:bool replaced?:bool",
	"SchedulePause":   "success:bool schedule revision:int paused:bool",
	"ScheduleDeleted": "success:bool schedule",
	"Preview":         "success:bool runs:[]PlannedRun",
	"PlannedRun":      "planned_at:time local",
	"Runs":            "success:bool runs:[]Run",
	"Run":             "planned_at?:time at:time outcome now?:bool count?:int id? seq?:int code?",

	"Members":      "success:bool members:[]Member",
	"Member":       "id address http_address role voter:bool alive:bool applied_index:int lag:int version cluster_version:int min_cluster_version:int max_cluster_version:int",
	"Health":       "success:bool healthy:bool failure_tolerance:num reasons:[]string cluster_version:int upgrade",
	"Clocks":       "success:bool max_offset:seconds agreed:bool majority?:time cluster_ahead?:seconds clocks:[]Clock",
	"Clock":        "id voter:bool answered:bool offset?:seconds within?:seconds off:bool",
	"Verification": "success:bool equal:bool index:int digests:[]Digest",
	"Digest":       "id digest error?",
	"Transfer":     "success:bool moved:bool",
	"Readiness":    "success:bool code? error? ready:bool reasons:[]string warnings:[]string leader",
}

const (
	topicShape = "topic delayed:int ready:int reserved:int dead:int retained?:int oldest_due_at?:time paused:bool paused_until?:time throttled_until?:time" +
		" added:int finished:int deleted:int timeouts:int died:int expired?:int settings_revision?:int"
	scheduleShape = "schedule revision:int spec zone start?:time end?:time jitter:seconds overlap missed missed_max?:int missed_after:seconds" +
		" paused:bool trouble? next_at?:time created_at:time changed_at:time counts:ScheduleCounts job:ScheduleJob"
)

// queryTypes are the types of query parameters that are not text.
var queryTypes = map[string]string{
	"max": "int", "count": "int", "credit": "int", "if_revision": "int", "all": "bool", "ttr": "num", "heartbeat": "num", "body": "bool",
}
