package api

import (
	"math"
	"reflect"

	"tarry/job"
)

// fieldDoc is what a field means: with its unit, and its range if it has one.
type fieldDoc struct {
	help        string
	least, most *float64
	choices     []string
}

func (f fieldDoc) between(least, most float64) fieldDoc {
	f.least, f.most = &least, &most
	return f
}

func (f fieldDoc) oneOf(choices ...string) fieldDoc {
	f.choices = choices
	return f
}

func says(help string) fieldDoc { return fieldDoc{help: help} }

// docOf returns the row of a field: its own in one schema, or that of all fields of the name.
func docOf(schema, field string) fieldDoc {
	if doc, found := fieldDocs[schema+"."+field]; found {
		return doc
	}
	if doc, found := fieldDocs[field]; found {
		return doc
	}
	panic("api/openapi_tables.go does not say what " + schema + "." + field + " is")
}

func helpOf(schema, field string) string { return docOf(schema, field).help }

var (
	anyCount = math.Inf(1)
	maxDelay = job.MaxDelay.Seconds()
	maxTTR   = job.MaxTTR.Seconds()
)

// fieldDocs has a row for each field of requests, replies, queries and paths, by its name,
// and where it means something else, by its schema and name.
var fieldDocs = map[string]fieldDoc{
	"success":    says("Whether the call succeeded; in a batch, whether every item did."),
	"code":       says("What failed, for programs; docs/http-api.md lists them."),
	"error":      says("What failed, for people: at most 1000 bytes."),
	"field":      says("The field of the request, or the query parameter, that is at fault."),
	"outcome":    says("Whether a failed call was done: not_applied is certainly not, unknown may be.").oneOf("not_applied", "unknown"),
	"openapi":    says("The version of OpenAPI that this is in."),
	"next":       says("Where the next page begins; absent on the last one."),
	"incomplete": says("Whether jobs may be missing, because a topic's index of the header is being built."),
	"more":       says("Whether there are more jobs: repeat the call."),
	"id":         says("The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes."),
	"seq":        says("The number of the job, in the order of the adds."),
	"topic":      says("The name of the topic, 1 to 200 bytes."),
	"state":      says("The state of the job; gone: it does not exist any more.").oneOf("delayed", "ready", "reserved", "dead", "finished", "deleted", "gone"),
	"revision":   says("It grows with every change."),
	"body":       says("The body of the job: any JSON value, returned as it was sent."),
	"value":      says("The body of the job, or null."),
	"existing":   says("Whether the same was there before, and nothing was created."),
	"replaced":   says("Whether it took the place of an earlier one."),
	"headers":    says("Names and values that go with the job: at most 64, of 8 KiB together."),
	"reason":     says("Why, in the consumer's words: at most 1000 bytes."),
	"results":    says("One result for each item, in their order."),
	"jobs":       says("The jobs."),
	"topics":     says("The topics."),
	"token":      says("Names one reservation of a job."),
	"consumer":   says("The name of the consumer, at most 64 bytes."),
	"attempts":   says("Attempts so far, this one included."),

	"postponed":                says("Whether the existing job got the due time of this add."),
	"expires_at":               says("When the job is dropped, or dead if its topic says so, unless somebody has it then. In a request, RFC 3339 text or milliseconds since 1970."),
	"UpdateItem.expires_at":    says("When the job is dropped, or dead if its topic says so, unless somebody has it then: RFC 3339 text, milliseconds since 1970, or never."),
	"UpdateRequest.expires_at": says("When the job is dropped, or dead if its topic says so, unless somebody has it then: RFC 3339 text, milliseconds since 1970, or never."),
	"due_at":                   says("When the job becomes or became ready. In a request, RFC 3339 text or milliseconds since 1970."),
	"reserved_until":           says("When the reservation expires."),
	"delay":                    says("How long until the job is due, in seconds.").between(0, maxDelay),
	"ttr":                      says("How long a reservation lasts, in seconds.").between(0.001, maxTTR),
	"priority":                 says("The smallest is handed out first.").between(0, math.MaxUint32),
	"max_attempts":             says("Attempts after which the job is dead; 0 is no limit.").between(0, math.MaxUint32),
	"body_base64":              says("Instead of body, bytes that are not UTF-8, in standard base64 with padding."),
	"value_base64":             says("Instead of value, bytes that are not UTF-8, in standard base64 with padding."),
	"if_exists":                says("What to do when the id is taken; conflict unless given.").oneOf("conflict", "keep", "replace", "postpone"),
	"if_revision":              says("Only if it has this revision."),
	"if_state":                 says("Only if the job is in one of these states; in a query, separated by commas."),
	"atomic":                   says("All jobs are added, or none."),
	"then":                     says("Jobs to add in the same step as the finish."),
	"to_topic":                 says("The topic that the job goes to; its own unless given."),
	"to":                       says("The topic that the jobs go to."),
	"states":                   says("The states of the jobs to move; all unless given."),
	"backoff":                  says("How long the job waits after a failed attempt."),
	"delays":                   says("Waits in seconds, one for each failed attempt; the last one repeats.").between(0, maxDelay),
	"base":                     says("The first wait, in seconds."),
	"factor":                   says("By how much each wait is longer than the one before.").between(1, 100),
	"jitter":                   says("By how much waits differ at random, as a fraction."),

	"AddRequest.jobs": says("The jobs to add, 1 to 1000."),

	"Backoff.max":          says("The longest wait, in seconds."),
	"BackoffRequest.max":   says("The longest wait, in seconds; 3600 unless given."),
	"BackoffRequest.delay": says("The wait after every failed attempt, in seconds.").between(0, maxDelay),

	"events":  says("What happened, oldest first."),
	"dropped": says("Events after the first that are not kept any more."),
	"at":      says("When it happened."),
	"event":   says("What happened, such as reserved or timed_out."),
	"attempt": says("The attempt that it belongs to."),

	"late":   says("How long the job waited after it was due, in seconds; of a cause, how much of that is its.").between(0, anyCount),
	"text":   says("The same in words."),
	"causes": says("What keeps, or kept, the job from its consumer."),
	"cause":  says("What it is.").oneOf("not_due", "paused", "rate", "max_reserved", "jobs_ahead", "no_consumer", "reserved", "dead", "finished", "deleted", "not_recorded"),
	"until":  says("When it ends; of a cause, at the latest."),
	"count":  says("How many jobs it is about."),

	"max":       says("How many at most."),
	"wait":      says("How long to wait for a job, in seconds.").between(0, job.MaxWait.Seconds()),
	"credit":    says("How many unfinished jobs the client holds at most.").between(1, job.MaxReserve),
	"heartbeat": says("How long the stream is silent at most, in seconds.").between(minHeartbeat.Seconds(), maxHeartbeat.Seconds()),
	"on_close":  says("What happens to unfinished jobs when the connection ends.").oneOf("keep", "release"),
	"timeout":   says("How long a post may take, in seconds."),
	"command":   says("What to do: add, pop, finish or delete, in any case."),

	"CommandRequest.timeout": says("How long pop waits for a job, in seconds.").between(0, job.MaxWait.Seconds()),
	"CommandRequest.count":   says("How many jobs pop gives at most.").between(1, job.MaxReserve),
	"ReserveRequest.max":     says("How many jobs at most; 1 unless given.").between(1, job.MaxReserve),
	"StreamRequest.max":      says("How many jobs the stream gives at most; no limit unless given.").between(1, anyCount),

	"delayed":           says("Jobs that are delayed."),
	"ready":             says("Jobs that are ready."),
	"reserved":          says("Jobs that are reserved."),
	"dead":              says("Jobs that are dead."),
	"retained":          says("Finished and deleted jobs that are retained."),
	"oldest_due_at":     says("The earliest due time of a delayed or ready job."),
	"paused":            says("Whether it is paused."),
	"paused_until":      says("When the pause ends; absent for one without end."),
	"throttled_until":   says("When the topic's rate allows the next job."),
	"added":             says("Jobs added so far."),
	"finished":          says("Jobs finished so far."),
	"timeouts":          says("Reservations that expired so far."),
	"died":              says("Jobs that died so far."),
	"expired":           says("Jobs that nobody took in time so far."),
	"settings_revision": says("The revision of the topic's settings."),
	"deleted":           says("Jobs deleted."),
	"kicked":            says("Jobs brought back."),
	"updated":           says("Jobs changed."),
	"moved":             says("Jobs moved."),
	"settings":          says("The settings of the topic."),
	"all":               says("All jobs instead of max."),
	"filter":            says("Only jobs that match all of its fields."),
	"rate":              says("Jobs a second; spreads the kicked jobs over time.").between(0.001, job.MaxRateMilli/1000),
	"for":               says("How long the pause lasts, in seconds.").between(0.001, maxDelay),
	"url":               says("The HTTP target; values in its query are not shown."),
	"secret":            says("Signs the posts."),
	"has_secret":        says("Whether posts are signed."),
	"concurrency":       says("How many posts at a time.").between(1, job.MaxPushConcurrency),

	"KickTopicRequest.max":         says("How many jobs at most; or give all.").between(1, job.MaxKick),
	"ReleaseTopicRequest.max":      says("How many jobs at most; or give all.").between(1, job.MaxKick),
	"ReleaseTopicRequest.consumer": says("Only jobs that this consumer reserved; those of all consumers unless given."),
	"released":                     says("Jobs released."),
	"PurgeRequest.max":             says("How many jobs at most; or give all.").between(1, job.MaxKick),
	"PurgeRequest.state":           says("The state of the jobs to delete.").oneOf("delayed", "ready", "dead"),
	"Stats.topics":                 says("How many topics there are."),
	"Transfer.moved":               says("Whether leadership moved; it does not if the node leads already."),
	"id_prefix":                    says("Jobs whose id begins with it."),
	"due_from":                     says("Jobs that are due then or later."),
	"due_to":                       says("Jobs that are due before."),
	"died_from":                    says("Jobs that died then or later."),
	"died_to":                      says("Jobs that died before."),
	"PauseRequest.until":           says("When the pause ends."),
	"ChangeItem.to":                says("The topic that the job goes to."),
	"MoveRequest.to":               says("The topic that the job goes to."),
	"ReserveRequest.topics":        says("Names of topics, 1 to 1000."),
	"StreamRequest.topics":         says("Names of topics, 1 to 1000."),
	"TransferRequest.id":           says("The node that leads from then on; the best follower unless given."),
	"addresses":                    says("Gossip addresses of the cluster's nodes, host:port, 1 to 100."),

	"schedule":             says("The name of the schedule, 1 to 200 bytes."),
	"schedules":            says("The schedules."),
	"spec":                 says("When it runs: a cron expression, @daily and the like, or @every 90s."),
	"zone":                 says("The time zone, as in the tz database; UTC unless given."),
	"start":                says("It does not run before."),
	"end":                  says("It does not run after."),
	"overlap":              says("What happens when a run is due while the job of the run before exists.").oneOf(overlapNames...),
	"missed":               says("What happens to runs that were missed.").oneOf(missedNames...),
	"missed_max":           says("How many missed runs are made up for."),
	"missed_after":         says("By how much a run may be late before it counts as missed, in seconds."),
	"job":                  says("The job that each run adds."),
	"trouble":              says("Why the schedule was paused by itself."),
	"next_at":              says("When it runs next."),
	"created_at":           says("When it was created."),
	"changed_at":           says("When it was changed."),
	"counts":               says("How many runs there were."),
	"started":              says("Runs that added a job."),
	"skipped":              says("Runs left out because of an overlap."),
	"refused":              says("Runs whose job was refused."),
	"runs":                 says("The runs."),
	"planned_at":           says("When the run is, or was, planned."),
	"local":                says("The same in the schedule's time zone."),
	"now":                  says("Whether it was asked for by a call."),
	"key":                  says("Makes a call that is repeated start one run only."),
	"Query.after":          says("The old name of cursor."),
	"Query.count":          says("The old name of max.").between(1, maxPreview),
	"PreviewRequest.count": says("The old name of max.").between(1, maxPreview),
	"PreviewRequest.max":   says("How many runs; 10 unless given.").between(1, maxPreview),
	"after":                says("Start after this name; empty: at the beginning."),

	"Schedule.jitter":             says("By how much runs are spread at random, in seconds."),
	"ScheduleReply.jitter":        says("By how much runs are spread at random, in seconds."),
	"ScheduleRequest.jitter":      says("By how much runs are spread at random, in seconds."),
	"ScheduleCounts.missed":       says("Runs that were missed."),
	"PreviewRequest.after":        says("The first run after this instant; now unless given."),
	"Run.outcome":                 says("What came of it."),
	"Run.id":                      says("The id of the job that it added."),
	"ScheduleRequest.if_revision": says("Only if the schedule has this revision; 0: only if there is none."),

	"members":             says("The nodes of the cluster."),
	"address":             says("Where other nodes reach it, host:port."),
	"http_address":        says("Where clients reach it, host:port."),
	"role":                says("leader, follower or another of Raft's."),
	"voter":               says("Whether it votes."),
	"alive":               says("Whether it answers."),
	"applied_index":       says("How far it has applied the log."),
	"lag":                 says("Log entries that it is behind the leader."),
	"version":             says("The release that it runs."),
	"cluster_version":     says("The version of the replicated state."),
	"min_cluster_version": says("The oldest version of the state that it can run."),
	"max_cluster_version": says("The newest version of the state that it can run."),
	"healthy":             says("Whether nothing is wrong."),
	"failure_tolerance":   says("How many nodes can fail; negative: so many are missing."),
	"reasons":             says("What is wrong."),
	"warnings":            says("What may become wrong."),
	"upgrade":             says("What keeps the cluster version from being raised."),
	"leader":              says("The node that leads; empty: none is known."),
	"max_offset":          says("By how much a clock may be off, in seconds."),
	"agreed":              says("Whether the clocks of a majority agree."),
	"majority":            says("The time of the majority."),
	"cluster_ahead":       says("By how much the queue's clock is ahead of the majority's, in seconds."),
	"clocks":              says("The clocks of the nodes."),
	"answered":            says("Whether the node told its time."),
	"offset":              says("By how much its clock is ahead of the majority's, in seconds."),
	"within":              says("The error of that measurement, in seconds."),
	"off":                 says("Whether its clock is wrong."),
	"equal":               says("Whether all nodes that answered have the same state."),
	"index":               says("The log index at which the states were compared."),
	"digests":             says("The digests of the nodes."),
	"digest":              says("A hash of the node's state."),

	"Member.id":           says("The name of the node."),
	"Clock.id":            says("The name of the node."),
	"Digest.id":           says("The name of the node."),
	"Digest.error":        says("Why the node gave no digest."),
	"Readiness.ready":     says("Whether this node can serve clients."),
	"Error.ready":         says("Of readyz: whether this node can serve clients."),
	"Path.id":             says("The id of the job, percent-encoded, or the name of the node."),
	"Path.name":           says("The name of the schedule, percent-encoded."),
	"Path.topic":          says("The name of the topic, percent-encoded."),
	"Query.consistency":   says("stale reads this node's own state, which may be behind.").oneOf("consistent", "stale"),
	"UpdatedJobs.skipped": says("Jobs that are found but cannot be changed, such as reserved ones."),
	"DeletedJobs.skipped": says("Jobs that are found but cannot be deleted."),
	"KickedJobs.skipped":  says("Jobs that are found but are neither dead nor delayed."),
	"UpdatedJobs.reason":  says("Why the first job was skipped."),
	"DeletedJobs.reason":  says("Why the first job was skipped."),
	"KickedJobs.reason":   says("Why the first job was skipped."),
	"UpdatedJobs.next":    says("The cursor of the call that goes on."),
	"DeletedJobs.next":    says("The cursor of the call that goes on."),
	"KickedJobs.next":     says("The cursor of the call that goes on."),
	"Query.cursor":        says("The next of the page before."),
	"Query.body":          says("Whether the page has the bodies of the jobs."),
	"Query.max":           says("How many at most.").between(1, anyCount),
	"Query.state":         says("Only jobs in this state.").oneOf("delayed", "ready", "reserved", "dead", "finished", "deleted"),
	"Query.topics":        says("Names of topics, separated by commas."),
}

// requests are what calls decode their requests into.
var requests = map[string]reflect.Type{
	"AddRequest":          reflect.TypeFor[addRequest](),
	"AddBatch":            reflect.TypeFor[addBatchRequest](),
	"UpdateRequest":       reflect.TypeFor[updateRequest](),
	"ReserveRequest":      reflect.TypeFor[reserveRequest](),
	"StreamRequest":       reflect.TypeFor[streamRequest](),
	"FinishRequest":       reflect.TypeFor[finishRequest](),
	"ReleaseRequest":      reflect.TypeFor[changeRequest](),
	"TouchRequest":        reflect.TypeFor[changeRequest](),
	"BuryRequest":         reflect.TypeFor[changeRequest](),
	"KickRequest":         reflect.TypeFor[changeRequest](),
	"MoveRequest":         reflect.TypeFor[changeRequest](),
	"ChangeItem":          reflect.TypeFor[changeRequest](),
	"ChangeBatch":         reflect.TypeFor[batch[changeRequest]](),
	"UpdateItem":          reflect.TypeFor[updateItem](),
	"UpdateBatch":         reflect.TypeFor[batch[updateItem]](),
	"CommandRequest":      reflect.TypeFor[commandRequest](),
	"KickTopicRequest":    reflect.TypeFor[kickTopicRequest](),
	"ReleaseTopicRequest": reflect.TypeFor[releaseTopicRequest](),
	"PurgeRequest":        reflect.TypeFor[purgeRequest](),
	"MoveTopicRequest":    reflect.TypeFor[moveTopicRequest](),
	"PauseRequest":        reflect.TypeFor[pauseRequest](),
	"Filter":              reflect.TypeFor[filterRequest](),
	"PreviewRequest":      reflect.TypeFor[previewRequest](),
	"ScheduleRequest":     reflect.TypeFor[scheduleRequest](),
	"RunRequest":          reflect.TypeFor[runRequest](),
	"JoinRequest":         reflect.TypeFor[joinRequest](),
	"TransferRequest":     reflect.TypeFor[transferRequest](),
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
	"Released":           "success:bool released:int more?:bool",
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
