package api

import (
	"net/http"
	"slices"
	"strings"
)

// route is one path with its calls by method.
type route struct {
	path    string
	methods methods
	refuse  handlerFunc // instead of all calls
}

// endpoint is a call with the query parameters that it knows, and whether it takes a
// request body. Any other parameter, and a non-empty body to a call that takes none, is
// rejected, because it would have no effect.
type endpoint struct {
	handle handlerFunc
	query  []string
	body   bool
	// manages is set for calls that change topics, schedules or the cluster rather than a
	// job: they are logged with the client.
	manages bool
}

// managed marks a call that changes many jobs: it is logged, too.
func managed(e endpoint) endpoint {
	e.manages = true
	return e
}

// managing marks all calls of a path that are not reads.
func managing(of methods) methods {
	for method, e := range of {
		e.manages = method != http.MethodGet
		of[method] = e
	}
	return of
}

// allow returns the value of the Allow header.
func (rt route) allow() string {
	var names []string
	for name := range rt.methods {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func on(h handlerFunc, query ...string) endpoint { return endpoint{handle: h, query: query} }
func with(h handlerFunc, query ...string) endpoint {
	return endpoint{handle: h, query: query, body: true}
}                                                // a body
func get(h handlerFunc, query ...string) methods { return methods{http.MethodGet: on(h, query...)} }
func do(h handlerFunc) methods                   { return methods{http.MethodPost: on(h)} }
func post(h handlerFunc) methods                 { return methods{http.MethodPost: with(h)} }

// deleteQuery are the parameters of a delete, which has no body for them.
var deleteQuery = []string{"token", "if_revision", "if_state"}

// routes is the whole HTTP API except /metrics. The router tries paths in this order, so
// the busy ones come first.
func (s *server) routes() []route {
	return slices.Concat(s.nextRoutes(), s.jobRoutes(), s.topicRoutes(), s.scheduleRoutes(), s.nodeRoutes())
}

func (s *server) jobRoutes() []route {
	return []route{
		{path: "/v1/jobs", methods: methods{
			http.MethodPost: with(s.add), http.MethodGet: on(s.listJobs, append([]string{"topic"}, listQuery...)...),
			http.MethodPatch: managed(with(s.updateFound, foundQuery...)), http.MethodDelete: managed(on(s.deleteFound, foundQuery...)),
		}},
		{path: "/v1/reserve", methods: post(s.reserve)},
		{path: "/v1/stream", methods: methods{http.MethodGet: on(s.stream, streamQuery...), http.MethodPost: with(s.stream, streamQuery...)}},
		{path: "/v1/jobs/{id}/finish", methods: post(s.finish)},
		// "batch" and "kick" are also ids of jobs like any other.
		{path: "/v1/jobs/{id:batch}", methods: methods{
			http.MethodPost: with(s.addBatch), http.MethodGet: on(s.getJob, "consistency"),
			http.MethodPatch: with(s.updateJob, "if_revision", "if_state"), http.MethodDelete: on(s.deleteJob, deleteQuery...),
		}},
		{path: "/v1/jobs/{id:kick}", methods: methods{
			http.MethodPost: managed(with(s.kickFound, foundQuery...)), http.MethodGet: on(s.getJob, "consistency"),
			http.MethodPatch: with(s.updateJob, "if_revision", "if_state"), http.MethodDelete: on(s.deleteJob, deleteQuery...),
		}},
		{path: "/v1/finish", methods: post(s.changeMany(verbFinish))},
		{path: "/", methods: post(s.command)},

		{path: "/v1/jobs/{id}", methods: methods{
			http.MethodGet: on(s.getJob, "consistency"), http.MethodPatch: with(s.updateJob, "if_revision", "if_state"), http.MethodDelete: on(s.deleteJob, deleteQuery...),
		}},
		{path: "/v1/jobs/{id}/release", methods: post(s.changeOne(verbRelease))},
		{path: "/v1/jobs/{id}/touch", methods: post(s.changeOne(verbTouch))},
		{path: "/v1/jobs/{id}/bury", methods: post(s.changeOne(verbBury))},
		{path: "/v1/jobs/{id}/kick", methods: post(s.changeOne(verbKick))},
		{path: "/v1/jobs/{id}/move", methods: post(s.changeOne(verbMove))},
		{path: "/v1/jobs/{id}/history", methods: get(s.jobHistory, "consistency")},
		{path: "/v1/jobs/{id}/explain", methods: get(s.explainJob, "consistency")},
		{path: "/v1/release", methods: post(s.changeMany(verbRelease))},
		{path: "/v1/touch", methods: post(s.changeMany(verbTouch))},
		{path: "/v1/bury", methods: post(s.changeMany(verbBury))},
		{path: "/v1/kick", methods: post(s.changeMany(verbKick))},
		{path: "/v1/delete", methods: post(s.changeMany(verbDelete))},
		{path: "/v1/update", methods: post(s.updateMany)},
	}
}

func (s *server) topicRoutes() []route {
	return []route{
		{path: "/v1/stats", methods: get(s.stats, "consistency")},
		{path: "/v1/topics", methods: get(s.topics, "cursor", "after", "max", "consistency")},
		{path: "/v1/topics/{topic}", methods: get(s.topic, "consistency")},
		{path: "/v1/topics/{topic}/jobs", methods: get(s.listTopic, listQuery...)},
		{path: "/v1/topics/{topic}/kick", methods: managing(post(s.kickTopic))},
		{path: "/v1/topics/{topic}/release", methods: managing(post(s.releaseTopic))},
		{path: "/v1/topics/{topic}/pause", methods: managing(post(s.pauseTopic))},
		{path: "/v1/topics/{topic}/resume", methods: managing(do(s.resumeTopic))},
		{path: "/v1/topics/{topic}/settings", methods: managing(methods{
			http.MethodGet: on(s.getSettings, "consistency"), http.MethodPut: with(s.putSettings, "if_revision"),
			http.MethodPatch: with(s.patchSettings, "if_revision"), http.MethodDelete: on(s.deleteSettings, "if_revision"),
		})},
		{path: "/v1/topic-settings", methods: get(s.topicSettings, "cursor", "after", "max", "consistency")},
		{path: "/v1/topics/{topic}/purge", methods: managing(post(s.purge))},
		{path: "/v1/topics/{topic}/move", methods: managing(post(s.moveTopic))},
	}
}

func (s *server) scheduleRoutes() []route {
	return []route{
		{path: "/v1/schedules", methods: get(s.schedules, "cursor", "after", "max", "consistency")},
		{path: "/v1/schedules/preview", methods: post(s.previewSpec)},
		{path: "/v1/schedules/{name}", methods: managing(methods{
			http.MethodGet: on(s.getSchedule, "consistency"), http.MethodPut: with(s.putSchedule, "if_revision"), http.MethodDelete: on(s.deleteSchedule, "if_revision"),
		})},
		{path: "/v1/schedules/{name}/preview", methods: get(s.previewSchedule, "max", "count")},
		{path: "/v1/schedules/{name}/runs", methods: get(s.scheduleRuns, "consistency")},
		{path: "/v1/schedules/{name}/run", methods: managing(post(s.runSchedule))},
		{path: "/v1/schedules/{name}/pause", methods: managing(do(s.pauseSchedule(true)))},
		{path: "/v1/schedules/{name}/resume", methods: managing(do(s.pauseSchedule(false)))},
	}
}

func (s *server) nodeRoutes() []route {
	return []route{
		{path: "/v1/cluster/members", methods: get(s.members)},
		{path: "/v1/cluster/members/{id}", methods: managing(methods{http.MethodDelete: on(s.removeMember)})},
		{path: "/v1/cluster/health", methods: get(s.health)},
		{path: "/v1/cluster/clock", methods: get(s.clock)},
		{path: "/v1/cluster/clock/reset", methods: managing(do(s.resetClock))},
		{path: "/v1/cluster/transfer-leadership", methods: managing(post(s.transferLeadership))},
		{path: "/v1/cluster/verify", methods: do(s.verify)},
		{path: "/v1/cluster/join", methods: managing(post(s.join))},
		{path: "/v1/cluster/leave", methods: managing(do(s.leave))},

		{path: "/v1/openapi.json", methods: get(s.openAPI)},
		{path: "/livez", methods: get(s.livez)},
		{path: "/readyz", methods: get(s.readyz)},
	}
}

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
	"PATCH /v1/jobs":            {name: "updateJobs", summary: "Changes the jobs that GET finds by the same query.", request: "UpdateRequest", reply: "UpdatedJobs"},
	"DELETE /v1/jobs":           {name: "deleteJobs", summary: "Deletes the jobs that GET finds by the same query.", reply: "DeletedJobs"},
	"POST /v1/jobs/kick":        {name: "kickJobs", summary: "Brings back the dead and delayed jobs that GET /v1/jobs finds by the same query.", request: "KickRequest", takes: verbKick.takes, reply: "KickedJobs"},
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
	"POST /v1/kick":              {name: "kickJobsById", summary: "Brings up to 1000 dead or delayed jobs back.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /v1/delete":            {name: "deleteJobsById", summary: "Deletes up to 1000 jobs in any state.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /v1/update":            {name: "updateJobsById", summary: "Changes up to 1000 delayed, ready or dead jobs in place.", request: "UpdateBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /":                     {name: "command", summary: "The command protocol of earlier systems.", request: "CommandRequest", required: []string{"command"}, reply: "CommandReply"},

	"GET /v1/stats":                      {name: "getStats", summary: "Counts the topics, and the jobs of all of them by state.", reply: "Stats"},
	"GET /v1/topics":                     {name: "listTopics", summary: "Lists topics by name.", reply: "TopicPage"},
	"GET /v1/topics/{topic}":             {name: "getTopic", summary: "Shows the counts of a topic.", reply: "TopicReply"},
	"GET /v1/topics/{topic}/jobs":        {name: "listJobs", summary: "Lists the jobs of a topic in one state.", reply: "JobPage"},
	"POST /v1/topics/{topic}/kick":       {name: "kickTopic", summary: "Brings dead jobs of a topic back.", request: "KickTopicRequest", reply: "Kicked"},
	"POST /v1/topics/{topic}/release":    {name: "releaseTopic", summary: "Gives reserved jobs of a topic back, those of one consumer or of all.", request: "ReleaseTopicRequest", reply: "Released"},
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
	"GET /v1/cluster/health":               {name: "getHealth", summary: "Reports whether the cluster is healthy.", reply: "Health"},
	"GET /v1/cluster/clock":                {name: "getClocks", summary: "Compares the clocks of the nodes.", reply: "Clocks"},
	"POST /v1/cluster/clock/reset":         {name: "resetClock", summary: "Sets the queue's clock back to the majority's.", reply: "Done"},
	"POST /v1/cluster/verify":              {name: "verify", summary: "Compares the state of all nodes.", reply: "Verification"},
	"POST /v1/cluster/join":                {name: "join", summary: "Makes this node join a cluster.", request: "JoinRequest", required: []string{"addresses"}, reply: "Done"},
	"POST /v1/cluster/leave":               {name: "leave", summary: "Removes this node from its cluster and stops it.", reply: "Done"},
	"GET /v1/openapi.json":                 {name: "getOpenAPI", summary: "This description.", reply: "Description"},
	"GET /livez":                           {name: "livez", summary: "Answers while the process runs.", reply: "Done"},
	"GET /readyz":                          {name: "readyz", summary: "Reports whether this node can serve clients.", reply: "Readiness", statuses: "200 503"},
	"POST /v1/cluster/transfer-leadership": {name: "transferLeadership", summary: "Hands leadership to another node.", request: "TransferRequest", reply: "Transfer"},
}
