package api

import "reflect"

// callDoc is what OpenAPI says of a call beyond its route.
type callDoc struct {
	name, summary string
	request       string   // in requests; "" for a call without one
	takes         []string // the fields of the request, unless it takes all
	required      []string // fields of the request, or query parameters
	reply         string   // in replies
	statuses      string   // of success, if not only 200
	content       string   // of the reply, unless JSON
}

// calls has a row for each route and method.
var calls = map[string]callDoc{
	"POST /v1/jobs":             {name: "addJob", summary: "Adds a job.", request: "AddRequest", required: []string{"topic"}, reply: "Added", statuses: "200 201"},
	"GET /v1/jobs":              {name: "findJobs", summary: "Lists jobs of all topics by the beginning of their ids, or by a header that topics index.", reply: "JobPage"},
	"POST /v1/jobs/batch":       {name: "addJobs", summary: "Adds up to 1000 jobs, each by itself or all or none.", request: "AddBatch", required: []string{"jobs"}, reply: "AddResults"},
	"GET /v1/jobs/{id}":         {name: "getJob", summary: "Shows a job with its body.", reply: "JobReply"},
	"PATCH /v1/jobs/{id}":       {name: "updateJob", summary: "Changes a delayed, ready or dead job in place.", request: "UpdateRequest", reply: "Changed"},
	"DELETE /v1/jobs/{id}":      {name: "deleteJob", summary: "Deletes a job in any state.", reply: "Changed"},
	"GET /v1/jobs/{id}/history": {name: "getHistory", summary: "Shows what happened to a job.", reply: "History"},
	"GET /v1/jobs/{id}/explain": {name: "explainJob", summary: "Says why a job is not delivered yet, or was delivered late.", reply: "Explanation"},

	"POST /v1/reserve":           {name: "reserve", summary: "Waits for ready jobs and reserves them.", request: "ReserveRequest", required: []string{"topics"}, reply: "ReservedJobs"},
	"GET /v1/stream":             {name: "stream", summary: "Streams jobs as they become ready, one JSON object a line.", required: []string{"topics"}, content: "application/x-ndjson"},
	"POST /v1/stream":            {name: "streamByRequest", summary: "Streams jobs as they become ready, one JSON object a line.", request: "StreamRequest", content: "application/x-ndjson"},
	"POST /v1/jobs/{id}/finish":  {name: "finishJob", summary: "Ends a reserved job, and may add others in the same step.", request: "FinishRequest", takes: []string{"id", "token", "then"}, reply: "Finished"},
	"POST /v1/jobs/{id}/release": {name: "releaseJob", summary: "Gives a reserved job back.", request: "ReleaseRequest", takes: append([]string{"id"}, verbRelease.takes...), reply: "Changed"},
	"POST /v1/jobs/{id}/touch":   {name: "touchJob", summary: "Starts the reservation of a job again.", request: "TouchRequest", takes: append([]string{"id"}, verbTouch.takes...), reply: "Changed"},
	"POST /v1/jobs/{id}/bury":    {name: "buryJob", summary: "Sets a reserved job aside as dead.", request: "BuryRequest", takes: append([]string{"id"}, verbBury.takes...), reply: "Changed"},
	"POST /v1/jobs/{id}/kick":    {name: "kickJob", summary: "Brings a dead or delayed job back.", request: "KickRequest", takes: append([]string{"id"}, verbKick.takes...), reply: "Changed"},
	"POST /v1/jobs/{id}/move":    {name: "moveJob", summary: "Moves a job to another topic.", request: "MoveRequest", takes: append([]string{"id"}, verbMove.takes...), reply: "Changed"},
	"POST /v1/finish":            {name: "finishJobs", summary: "Ends up to 1000 reserved jobs.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /v1/release":           {name: "releaseJobs", summary: "Gives up to 1000 reserved jobs back.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /v1/touch":             {name: "touchJobs", summary: "Starts the reservations of up to 1000 jobs again.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /v1/bury":              {name: "buryJobs", summary: "Sets up to 1000 reserved jobs aside as dead.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /":                     {name: "command", summary: "The command protocol of earlier systems.", request: "CommandRequest", required: []string{"command"}, reply: "CommandReply"},

	"GET /v1/stats":                      {name: "getStats", summary: "Counts the topics, and the jobs of all of them by state.", reply: "Stats"},
	"GET /v1/topics":                     {name: "listTopics", summary: "Lists topics by name.", reply: "TopicPage"},
	"GET /v1/topics/{topic}":             {name: "getTopic", summary: "Shows the counts of a topic.", reply: "TopicReply"},
	"GET /v1/topics/{topic}/jobs":        {name: "listJobs", summary: "Lists the jobs of a topic in one state.", reply: "JobPage"},
	"POST /v1/topics/{topic}/kick":       {name: "kickTopic", summary: "Brings dead jobs of a topic back.", request: "KickTopicRequest", reply: "Kicked"},
	"POST /v1/topics/{topic}/pause":      {name: "pauseTopic", summary: "Stops the delivery of a topic's jobs.", request: "PauseRequest", reply: "Pause"},
	"POST /v1/topics/{topic}/resume":     {name: "resumeTopic", summary: "Ends the pause of a topic.", reply: "Pause"},
	"GET /v1/topics/{topic}/settings":    {name: "getSettings", summary: "Shows the settings of a topic.", reply: "TopicSettingsReply"},
	"PUT /v1/topics/{topic}/settings":    {name: "putSettings", summary: "Replaces the settings of a topic.", request: "SettingsRequest", reply: "TopicSettingsReply"},
	"PATCH /v1/topics/{topic}/settings":  {name: "patchSettings", summary: "Changes the settings of a topic that are given.", request: "SettingsRequest", reply: "TopicSettingsReply"},
	"DELETE /v1/topics/{topic}/settings": {name: "deleteSettings", summary: "Deletes the settings of a topic.", reply: "TopicSettingsReply"},
	"GET /v1/topic-settings":             {name: "listSettings", summary: "Lists the topics that have settings.", reply: "TopicSettingsPage"},
	"POST /v1/topics/{topic}/purge":      {name: "purgeTopic", summary: "Deletes jobs of a topic in one state.", request: "PurgeRequest", required: []string{"state"}, reply: "Purged"},
	"POST /v1/topics/{topic}/move":       {name: "moveTopic", summary: "Moves the jobs of a topic to another.", request: "MoveTopicRequest", required: []string{"to"}, reply: "Moved"},

	"GET /v1/schedules":                    {name: "listSchedules", summary: "Lists schedules by name.", reply: "SchedulePage"},
	"POST /v1/schedules/preview":           {name: "previewSpec", summary: "Shows when a schedule would run.", request: "PreviewRequest", required: []string{"spec"}, reply: "Preview"},
	"GET /v1/schedules/{name}":             {name: "getSchedule", summary: "Shows a schedule.", reply: "ScheduleReply"},
	"PUT /v1/schedules/{name}":             {name: "putSchedule", summary: "Creates or replaces a schedule.", request: "ScheduleRequest", required: []string{"spec", "job"}, reply: "SchedulePut", statuses: "200 201"},
	"DELETE /v1/schedules/{name}":          {name: "deleteSchedule", summary: "Deletes a schedule.", reply: "ScheduleDeleted"},
	"GET /v1/schedules/{name}/preview":     {name: "previewSchedule", summary: "Shows when a schedule runs next.", reply: "Preview"},
	"GET /v1/schedules/{name}/runs":        {name: "getRuns", summary: "Shows the last runs of a schedule.", reply: "Runs"},
	"POST /v1/schedules/{name}/run":        {name: "runSchedule", summary: "Runs a schedule now.", request: "RunRequest", reply: "Added", statuses: "200 201"},
	"POST /v1/schedules/{name}/pause":      {name: "pauseSchedule", summary: "Pauses a schedule.", reply: "SchedulePause"},
	"POST /v1/schedules/{name}/resume":     {name: "resumeSchedule", summary: "Resumes a schedule.", reply: "SchedulePause"},
	"GET /v1/cluster/members":              {name: "listMembers", summary: "Lists the nodes of the cluster.", reply: "Members"},
	"DELETE /v1/cluster/members/{id}":      {name: "removeMember", summary: "Removes a node for good.", reply: "Done"},
	"GET /v1/cluster/health":               {name: "getHealth", summary: "Tells whether the cluster is healthy.", reply: "Health"},
	"GET /v1/cluster/clock":                {name: "getClocks", summary: "Compares the clocks of the nodes.", reply: "Clocks"},
	"POST /v1/cluster/clock/reset":         {name: "resetClock", summary: "Sets the queue's clock back to the majority's.", reply: "Done"},
	"POST /v1/cluster/verify":              {name: "verify", summary: "Compares the state of all nodes.", reply: "Verification"},
	"POST /v1/cluster/join":                {name: "join", summary: "Makes this node join a cluster.", request: "JoinRequest", required: []string{"addresses"}, reply: "Done"},
	"POST /v1/cluster/leave":               {name: "leave", summary: "Removes this node from its cluster and stops it.", reply: "Done"},
	"GET /v1/openapi.json":                 {name: "getOpenAPI", summary: "This description.", reply: "Description"},
	"GET /livez":                           {name: "livez", summary: "Answers while the process runs.", reply: "Done"},
	"GET /readyz":                          {name: "readyz", summary: "Tells whether this node can serve clients.", reply: "Readiness", statuses: "200 503"},
	"POST /v1/cluster/transfer-leadership": {name: "transferLeadership", summary: "Hands leadership to another node.", request: "TransferRequest", reply: "Transfer"},
}

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
	"max": "int", "count": "int", "credit": "int", "if_revision": "int", "ttr": "num", "heartbeat": "num", "body": "bool",
}
