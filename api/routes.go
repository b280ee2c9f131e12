package api

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"tarry/api/access"
)

// route is one path with its calls by method.
type route struct {
	path    string
	methods methods
	refuse  handlerFunc // instead of all calls
	// shown is the path without the router's patterns, in what is recorded of calls. The
	// handler sets it, once for all calls.
	shown string
}

// fixedID is an id in a path that has calls of its own.
var fixedID = regexp.MustCompile(`{id:([a-z]+)}`)

// template returns the path without the router's patterns.
func (rt route) template() string { return fixedID.ReplaceAllString(rt.path, "$1") }

// endpoint is a call with the query parameters that it knows, and whether it takes a
// request body. Any other parameter, and a non-empty body to a call that takes none, is
// rejected, because it would have no effect.
type endpoint struct {
	need   access.Need // who may make the call
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

func on(n access.Need, h handlerFunc, query ...string) endpoint {
	return endpoint{need: n, handle: h, query: query}
}

// with is on for a call with a request body.
func with(n access.Need, h handlerFunc, query ...string) endpoint {
	return endpoint{need: n, handle: h, query: query, body: true}
}

func get(n access.Need, h handlerFunc, query ...string) methods {
	return methods{http.MethodGet: on(n, h, query...)}
}
func do(n access.Need, h handlerFunc) methods   { return methods{http.MethodPost: on(n, h)} }
func post(n access.Need, h handlerFunc) methods { return methods{http.MethodPost: with(n, h)} }

// deleteQuery are the parameters of a delete, which has no body for them.
var deleteQuery = []string{"token", "if_revision", "if_state"}

// forecastQuery are the parameters of a forecast.
var forecastQuery = []string{"start", "step", "steps", "consistency"}

// deadQuery are the parameters of reads of dead jobs by reason.
var deadQuery = []string{"max", "consistency"}

// routes is the whole HTTP API except /metrics. The router tries paths in this order, so
// the busy ones come first.
func (s *server) routes() []route {
	return slices.Concat(s.nextRoutes(), s.jobRoutes(), s.topicRoutes(), s.scheduleRoutes(), s.authRoutes(), s.namespaceRoutes(), s.nodeRoutes())
}

func (s *server) jobRoutes() []route {
	return []route{
		{path: "/v1/jobs", methods: methods{
			http.MethodPost: with(access.NeedAdd, s.add), http.MethodGet: on(access.NeedRead, s.listJobs, append([]string{"topic"}, listQuery...)...),
			http.MethodPatch: managed(with(access.NeedManage, s.updateFound, foundQuery...)), http.MethodDelete: managed(on(access.NeedManage, s.deleteFound, foundQuery...)),
		}},
		{path: "/v1/reserve", methods: post(access.NeedConsume, s.reserve)},
		{path: "/v1/stream", methods: methods{http.MethodGet: on(access.NeedConsume, s.stream, streamQuery...), http.MethodPost: with(access.NeedConsume, s.stream, streamQuery...)}},
		{path: "/v1/jobs/{id}/finish", methods: post(access.NeedConsume, s.finish)},
		// "batch" and "kick" are also ids of jobs like any other.
		{path: "/v1/jobs/{id:batch}", methods: methods{
			http.MethodPost: with(access.NeedAdd, s.addBatch), http.MethodGet: on(access.NeedRead, s.getJob, "consistency"),
			http.MethodPatch: with(access.NeedManage, s.updateJob, "if_revision", "if_state"), http.MethodDelete: on(access.NeedManage, s.deleteJob, deleteQuery...),
		}},
		{path: "/v1/jobs/{id:kick}", methods: methods{
			http.MethodPost: managed(with(access.NeedManage, s.kickFound, foundQuery...)), http.MethodGet: on(access.NeedRead, s.getJob, "consistency"),
			http.MethodPatch: with(access.NeedManage, s.updateJob, "if_revision", "if_state"), http.MethodDelete: on(access.NeedManage, s.deleteJob, deleteQuery...),
		}},
		{path: "/v1/finish", methods: post(access.NeedConsume, s.changeMany(verbFinish))},
		{path: "/", methods: post(access.NeedCommand, s.command)},

		{path: "/v1/jobs/{id}", methods: methods{
			http.MethodGet: on(access.NeedRead, s.getJob, "consistency"), http.MethodPatch: with(access.NeedManage, s.updateJob, "if_revision", "if_state"), http.MethodDelete: on(access.NeedManage, s.deleteJob, deleteQuery...),
		}},
		{path: "/v1/jobs/{id}/release", methods: post(access.NeedConsume, s.changeOne(verbRelease))},
		{path: "/v1/jobs/{id}/touch", methods: post(access.NeedConsume, s.changeOne(verbTouch))},
		{path: "/v1/jobs/{id}/bury", methods: post(access.NeedConsume, s.changeOne(verbBury))},
		{path: "/v1/jobs/{id}/kick", methods: post(access.NeedManage, s.changeOne(verbKick))},
		{path: "/v1/jobs/{id}/move", methods: post(access.NeedManage, s.changeOne(verbMove))},
		{path: "/v1/jobs/{id}/history", methods: get(access.NeedRead, s.jobHistory, "consistency")},
		{path: "/v1/jobs/{id}/explain", methods: get(access.NeedRead, s.explainJob, "consistency")},
		{path: "/v1/release", methods: post(access.NeedConsume, s.changeMany(verbRelease))},
		{path: "/v1/touch", methods: post(access.NeedConsume, s.changeMany(verbTouch))},
		{path: "/v1/bury", methods: post(access.NeedConsume, s.changeMany(verbBury))},
		{path: getManyPath, methods: methods{http.MethodPost: with(access.NeedRead, s.getMany, "body", "consistency")}},
		{path: "/v1/kick", methods: post(access.NeedManage, s.changeMany(verbKick))},
		{path: "/v1/delete", methods: post(access.NeedManage, s.changeMany(verbDelete))},
		{path: "/v1/update", methods: post(access.NeedManage, s.updateMany)},
		{path: "/v1/import", methods: managing(post(access.NeedManage, s.importJobs))},
	}
}

func (s *server) topicRoutes() []route {
	return []route{
		{path: "/v1/stats", methods: get(access.NeedRead, s.stats, "consistency")},
		{path: "/v1/rates", methods: get(access.NeedReadAll, s.rates)},
		{path: "/v1/forecast", methods: get(access.NeedReadAll, s.forecast, forecastQuery...)},
		{path: "/v1/forecast/topics", methods: get(access.NeedRead, s.forecastTopics, "start", "step", "max", "consistency")},
		{path: "/v1/dead", methods: get(access.NeedReadAll, s.dead, deadQuery...)},
		{path: "/v1/dead/topics", methods: get(access.NeedRead, s.deadTopics, append([]string{"exact_reason"}, deadQuery...)...)},
		{path: "/v1/dead/kick", methods: managing(post(access.NeedManageAll, s.kickDead))},
		{path: "/v1/dead/purge", methods: managing(post(access.NeedManageAll, s.purgeDead))},
		{path: "/v1/topics", methods: get(access.NeedRead, s.topics, "cursor", "after", "max", "consistency")},
		{path: "/v1/topics/{topic}", methods: get(access.NeedRead, s.topic, "consistency")},
		{path: "/v1/topics/{topic}/rates", methods: get(access.NeedRead, s.topicRates)},
		{path: "/v1/topics/{topic}/forecast", methods: get(access.NeedRead, s.topicForecast, forecastQuery...)},
		{path: "/v1/topics/{topic}/dead", methods: get(access.NeedRead, s.topicDead, deadQuery...)},
		{path: "/v1/topics/{topic}/jobs", methods: get(access.NeedRead, s.listTopic, listQuery...)},
		{path: "/v1/topics/{topic}/kick", methods: managing(post(access.NeedManage, s.kickTopic))},
		{path: "/v1/topics/{topic}/release", methods: managing(post(access.NeedManage, s.releaseTopic))},
		{path: "/v1/topics/{topic}/reschedule", methods: managing(post(access.NeedManage, s.rescheduleTopic))},
		{path: "/v1/topics/{topic}/pause", methods: managing(post(access.NeedManage, s.pauseTopic))},
		{path: "/v1/topics/{topic}/resume", methods: managing(do(access.NeedManage, s.resumeTopic))},
		{path: "/v1/topics/{topic}/settings", methods: managing(methods{
			http.MethodGet: on(access.NeedRead, s.getSettings, "consistency"), http.MethodPut: with(access.NeedManage, s.putSettings, "if_revision"),
			http.MethodPatch: with(access.NeedManage, s.patchSettings, "if_revision"), http.MethodDelete: on(access.NeedManage, s.deleteSettings, "if_revision"),
		})},
		{path: "/v1/topic-settings", methods: get(access.NeedRead, s.topicSettings, "cursor", "after", "max", "consistency")},
		{path: "/v1/topics/{topic}/purge", methods: managing(post(access.NeedManage, s.purge))},
		{path: "/v1/topics/{topic}/move", methods: managing(post(access.NeedManage, s.moveTopic))},
	}
}

func (s *server) scheduleRoutes() []route {
	return []route{
		{path: "/v1/schedules", methods: get(access.NeedRead, s.schedules, "cursor", "after", "max", "consistency")},
		{path: "/v1/schedules/preview", methods: post(access.NeedReadOrManage, s.previewSpec)},
		{path: "/v1/schedules/{name}", methods: managing(methods{
			http.MethodGet: on(access.NeedRead, s.getSchedule, "consistency"), http.MethodPut: with(access.NeedManage, s.putSchedule, "if_revision"), http.MethodDelete: on(access.NeedManage, s.deleteSchedule, "if_revision"),
		})},
		{path: "/v1/schedules/{name}/preview", methods: get(access.NeedRead, s.previewSchedule, "max", "count")},
		{path: "/v1/schedules/{name}/runs", methods: get(access.NeedRead, s.scheduleRuns, "consistency")},
		{path: "/v1/schedules/{name}/run", methods: managing(post(access.NeedManage, s.runSchedule))},
		{path: "/v1/schedules/{name}/pause", methods: managing(do(access.NeedManage, s.pauseSchedule(true)))},
		{path: "/v1/schedules/{name}/resume", methods: managing(do(access.NeedManage, s.pauseSchedule(false)))},
	}
}

func (s *server) authRoutes() []route {
	return []route{
		{path: "/v1/whoami", methods: get(access.NeedCaller, s.whoami)},
		{path: "/v1/tokens", methods: get(access.NeedAdmin, s.tokens, "cursor", "max", "consistency")},
		{path: "/v1/tokens/{id}", methods: managing(methods{
			http.MethodGet: on(access.NeedAdmin, s.getToken, "consistency"), http.MethodPut: with(access.NeedAdmin, s.putToken, "if_revision"), http.MethodDelete: on(access.NeedAdmin, s.deleteToken, "if_revision"),
		})},
		{path: "/v1/tokens/{id}/rotate", methods: managing(post(access.NeedAdmin, s.rotateToken))},
		{path: "/v1/auth", methods: managing(methods{http.MethodGet: on(access.NeedObserve, s.getAuth, "consistency"), http.MethodPut: with(access.NeedAdmin, s.putAuth, "if_revision")})},
		{path: "/v1/secrets", methods: get(access.NeedAdmin, s.secrets)},
		{path: "/v1/secrets/rewrap", methods: managing(do(access.NeedAdmin, s.rewrapSecrets))},
		{path: "/v1/auth/bootstrap", methods: managing(post(access.NeedProof, s.bootstrap))},
	}
}

func (s *server) nodeRoutes() []route {
	return []route{
		{path: "/v1/cluster/members", methods: get(access.NeedCaller, s.members)},
		{path: "/v1/cluster/members/{id}", methods: managing(methods{http.MethodDelete: on(access.NeedOperate, s.removeMember)})},
		{path: "/v1/cluster/removed", methods: get(access.NeedObserve, s.removedNodes)},
		{path: "/v1/cluster/removed/{id}", methods: managing(methods{http.MethodDelete: on(access.NeedOperate, s.admitNode)})},
		{path: "/v1/cluster/admission", methods: managing(methods{http.MethodGet: on(access.NeedObserve, s.getAdmission, "consistency"), http.MethodPut: with(access.NeedOperate, s.putAdmission)})},
		{path: "/v1/cluster/invitations", methods: managing(methods{http.MethodGet: on(access.NeedObserve, s.invitations, "consistency"), http.MethodPost: with(access.NeedOperate, s.invite)})},
		{path: "/v1/cluster/invitations/{id}", methods: managing(methods{http.MethodDelete: on(access.NeedOperate, s.uninvite)})},
		{path: "/v1/cluster/health", methods: get(access.NeedObserve, s.health)},
		{path: "/v1/cluster/clock", methods: get(access.NeedObserve, s.clock)},
		{path: "/v1/cluster/clock/reset", methods: managing(do(access.NeedOperate, s.resetClock))},
		{path: "/v1/cluster/keyring", methods: get(access.NeedObserve, s.keyring)},
		{path: "/v1/cluster/keyring/install", methods: managing(do(access.NeedOperate, s.installKey))},
		{path: "/v1/cluster/keyring/{key}", methods: managing(methods{http.MethodDelete: on(access.NeedOperate, s.removeKey)})},
		{path: "/v1/cluster/keyring/{key}/use", methods: managing(do(access.NeedOperate, s.useKey))},
		{path: "/v1/cluster/backup", methods: methods{http.MethodGet: on(access.NeedOperate, s.backup, "rate", "consistency"), http.MethodPost: with(access.NeedOperate, s.backup, "rate", "consistency")}},
		{path: "/v1/cluster/restore", methods: managing(methods{http.MethodPost: with(access.NeedRestore, s.restore, "from_now", "auth", "dry_run", "cluster")})},
		{path: "/v1/cluster/log", methods: get(access.NeedOperate, s.clusterLog, "index", "term", "cluster")},
		{path: "/v1/cluster/standby", methods: get(access.NeedObserve, s.standby)},
		{path: "/v1/cluster/standby/promote", methods: managing(post(access.NeedOperate, s.promoteStandby))},
		{path: "/v1/cluster/backups", methods: get(access.NeedOperateNode, s.scheduledBackups)},
		{path: "/v1/cluster/transfer-leadership", methods: managing(post(access.NeedOperate, s.transferLeadership))},
		{path: "/v1/cluster/events", methods: get(access.NeedObserve, s.events, "from")},
		{path: "/v1/cluster/node", methods: get(access.NeedObserve, s.about)},
		{path: "/v1/cluster/node/log", methods: managing(methods{http.MethodGet: on(access.NeedOperateEarly, s.nodeLog), http.MethodPut: with(access.NeedOperateEarly, s.putLogLevel)})},
		{path: "/v1/cluster/drain", methods: managing(methods{http.MethodPost: on(access.NeedOperateNode, s.drain(true)), http.MethodDelete: on(access.NeedOperateNode, s.drain(false))})},
		{path: "/v1/cluster/verify", methods: do(access.NeedOperate, s.verify)},
		{path: "/v1/cluster/join", methods: managing(post(access.NeedOperateEarly, s.join))},
		{path: "/v1/cluster/leave", methods: managing(do(access.NeedOperate, s.leave))},

		{path: "/v1/openapi.json", methods: get(access.NeedCaller, s.openAPI)},
		{path: "/livez", methods: get(access.NeedNothing, s.livez)},
		{path: "/readyz", methods: get(access.NeedNothing, s.readyz)},
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
	sends         string   // the content of the request, unless JSON
	headers       []string // of the request
}

// calls has a row for each route and method.
var calls = map[string]callDoc{
	"POST /v1/jobs":             {name: "addJob", summary: "Adds a job.", request: "AddRequest", required: []string{"topic"}, reply: "Added", statuses: "200 201", headers: append([]string{keyHeader}, traceHeaders...)},
	"GET /v1/jobs":              {name: "findJobs", summary: "Lists jobs of all topics by the beginning of their ids, or by a header that topics index.", reply: "JobPage"},
	"PATCH /v1/jobs":            {name: "updateJobs", summary: "Changes the jobs that GET finds by the same query.", request: "UpdateRequest", reply: "UpdatedJobs"},
	"DELETE /v1/jobs":           {name: "deleteJobs", summary: "Deletes the jobs that GET finds by the same query.", reply: "DeletedJobs"},
	"POST /v1/jobs/kick":        {name: "kickJobs", summary: "Brings back the dead and delayed jobs that GET /v1/jobs finds by the same query.", request: "KickRequest", takes: verbKick.takes, reply: "KickedJobs"},
	"POST /v1/jobs/batch":       {name: "addJobs", summary: "Adds up to 1000 jobs, each by itself or all or none.", request: "AddBatch", required: []string{"jobs"}, reply: "AddResults", headers: traceHeaders},
	"GET /v1/jobs/{id}":         {name: "getJob", summary: "Shows a job with its body.", reply: "JobReply"},
	"PATCH /v1/jobs/{id}":       {name: "updateJob", summary: "Changes a delayed, ready or dead job in place.", request: "UpdateRequest", reply: "Changed"},
	"DELETE /v1/jobs/{id}":      {name: "deleteJob", summary: "Deletes a job in any state.", reply: "Changed"},
	"GET /v1/jobs/{id}/history": {name: "getHistory", summary: "Shows what happened to a job.", reply: "History"},
	"GET /v1/jobs/{id}/explain": {name: "explainJob", summary: "Says why a job is not delivered yet, or was delivered late.", reply: "Explanation"},

	"POST /v1/import": {name: "importJobs", summary: "Adds up to 1000 jobs as they were elsewhere: with their attempts, waiting or dead.", request: "ImportBatch", required: []string{"jobs"}, reply: "AddResults"},

	"POST /v1/reserve":           {name: "reserve", summary: "Waits for ready jobs and reserves them.", request: "ReserveRequest", required: []string{"topics"}, reply: "ReservedJobs"},
	"GET /v1/stream":             {name: "stream", summary: "Streams jobs as they become ready, one JSON object a line.", required: []string{"topics"}, content: "application/x-ndjson"},
	"POST /v1/stream":            {name: "streamByRequest", summary: "Streams jobs as they become ready, one JSON object a line.", request: "StreamRequest", content: "application/x-ndjson"},
	"POST /v1/jobs/{id}/finish":  {name: "finishJob", summary: "Ends a reserved job, and may add others in the same step.", request: "FinishRequest", takes: []string{"id", "token", "then"}, reply: "Finished", headers: traceHeaders},
	"POST /v1/jobs/{id}/release": {name: "releaseJob", summary: "Gives a reserved job back.", request: "ReleaseRequest", takes: append([]string{"id"}, verbRelease.takes...), reply: "Changed"},
	"POST /v1/jobs/{id}/touch":   {name: "touchJob", summary: "Starts the reservation of a job again.", request: "TouchRequest", takes: append([]string{"id"}, verbTouch.takes...), reply: "Changed"},
	"POST /v1/jobs/{id}/bury":    {name: "buryJob", summary: "Sets a reserved job aside as dead.", request: "BuryRequest", takes: append([]string{"id"}, verbBury.takes...), reply: "Changed"},
	"POST /v1/jobs/{id}/kick":    {name: "kickJob", summary: "Brings a dead or delayed job back.", request: "KickRequest", takes: append([]string{"id"}, verbKick.takes...), reply: "Changed"},
	"POST /v1/jobs/{id}/move":    {name: "moveJob", summary: "Moves a job to another topic.", request: "MoveRequest", takes: append([]string{"id"}, verbMove.takes...), reply: "Changed"},
	"POST /v1/finish":            {name: "finishJobs", summary: "Ends up to 1000 reserved jobs.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /v1/release":           {name: "releaseJobs", summary: "Gives up to 1000 reserved jobs back.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /v1/touch":             {name: "touchJobs", summary: "Starts the reservations of up to 1000 jobs again.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /v1/bury":              {name: "buryJobs", summary: "Sets up to 1000 reserved jobs aside as dead.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /v1/get":               {name: "getJobs", summary: "Shows up to 1000 jobs by their ids, with their bodies unless asked not to.", request: "GetRequest", required: []string{"ids"}, reply: "GetResults"},
	"POST /v1/kick":              {name: "kickJobsById", summary: "Brings up to 1000 dead or delayed jobs back.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /v1/delete":            {name: "deleteJobsById", summary: "Deletes up to 1000 jobs in any state.", request: "ChangeBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /v1/update":            {name: "updateJobsById", summary: "Changes up to 1000 delayed, ready or dead jobs in place.", request: "UpdateBatch", required: []string{"jobs"}, reply: "ChangeResults"},
	"POST /":                     {name: "command", summary: "The command protocol of earlier systems.", request: "CommandRequest", required: []string{"command"}, reply: "CommandReply", headers: traceHeaders},

	"GET /v1/stats":                      {name: "getStats", summary: "Counts the topics, and the jobs of all of them by state.", reply: "Stats"},
	"GET /v1/topics":                     {name: "listTopics", summary: "Lists topics by name.", reply: "TopicPage"},
	"GET /v1/topics/{topic}":             {name: "getTopic", summary: "Shows the counts of a topic.", reply: "TopicReply"},
	"GET /v1/rates":                      {name: "getRates", summary: "Shows what happened in the last 15 minutes, step by step, as far as this node knows.", reply: "Rates"},
	"GET /v1/topics/{topic}/rates":       {name: "getTopicRates", summary: "Shows what happened to the jobs of a topic in the last 15 minutes, step by step, as far as this node knows.", reply: "Rates"},
	"GET /v1/forecast":                   {name: "getForecast", summary: "Counts the delayed jobs of all topics by when they are due, step by step.", reply: "Forecast"},
	"GET /v1/topics/{topic}/forecast":    {name: "getTopicForecast", summary: "Counts the delayed jobs of a topic by when they are due, step by step.", reply: "Forecast"},
	"GET /v1/forecast/topics":            {name: "getForecastTopics", summary: "Lists the topics of which most delayed jobs are due within a time.", reply: "DueTopics"},
	"GET /v1/dead":                       {name: "getDead", summary: "Groups the dead jobs of all topics by reason, the largest group first.", reply: "DeadReasons"},
	"GET /v1/topics/{topic}/dead":        {name: "getTopicDead", summary: "Groups the dead jobs of a topic by reason, the largest group first.", reply: "DeadReasons"},
	"GET /v1/dead/topics":                {name: "getDeadTopics", summary: "Lists the topics that most dead jobs with a reason are in.", required: []string{"exact_reason"}, reply: "DeadTopics"},
	"POST /v1/dead/kick":                 {name: "kickDead", summary: "Brings the dead jobs of all topics back that have a reason.", request: "KickDeadRequest", required: []string{"exact_reason"}, reply: "Kicked"},
	"POST /v1/dead/purge":                {name: "purgeDead", summary: "Deletes the dead jobs of all topics that have a reason.", request: "PurgeDeadRequest", required: []string{"exact_reason"}, reply: "Purged"},
	"GET /v1/topics/{topic}/jobs":        {name: "listJobs", summary: "Lists the jobs of a topic in one state.", reply: "JobPage"},
	"POST /v1/topics/{topic}/kick":       {name: "kickTopic", summary: "Brings dead jobs of a topic back.", request: "KickTopicRequest", reply: "Kicked"},
	"POST /v1/topics/{topic}/release":    {name: "releaseTopic", summary: "Gives reserved jobs of a topic back, those of one consumer or of all.", request: "ReleaseTopicRequest", reply: "Released"},
	"POST /v1/topics/{topic}/reschedule": {name: "rescheduleTopic", summary: "Spreads or postpones the delayed jobs of a topic that are due in a range of time.", request: "RescheduleRequest", required: []string{"filter"}, reply: "Rescheduled"},
	"POST /v1/topics/{topic}/pause":      {name: "pauseTopic", summary: "Stops the delivery of a topic's jobs.", request: "PauseRequest", reply: "Pause"},
	"POST /v1/topics/{topic}/resume":     {name: "resumeTopic", summary: "Ends the pause of a topic.", reply: "Pause"},
	"GET /v1/topics/{topic}/settings":    {name: "getSettings", summary: "Shows the settings of a topic.", reply: "TopicSettingsReply"},
	"PUT /v1/topics/{topic}/settings":    {name: "putSettings", summary: "Replaces the settings of a topic.", request: "SettingsRequest", reply: "TopicSettingsReply"},
	"PATCH /v1/topics/{topic}/settings":  {name: "patchSettings", summary: "Changes the settings of a topic that are given.", request: "SettingsRequest", reply: "TopicSettingsReply"},
	"DELETE /v1/topics/{topic}/settings": {name: "deleteSettings", summary: "Deletes the settings of a topic.", reply: "TopicSettingsReply"},
	"GET /v1/topic-settings":             {name: "listSettings", summary: "Lists the topics that have settings.", reply: "TopicSettingsPage"},
	"POST /v1/topics/{topic}/purge":      {name: "purgeTopic", summary: "Deletes jobs of a topic in one state.", request: "PurgeRequest", required: []string{"state"}, reply: "Purged"},
	"POST /v1/topics/{topic}/move":       {name: "moveTopic", summary: "Moves the jobs of a topic to another, those that match a filter or all.", request: "MoveTopicRequest", required: []string{"to"}, reply: "Moved"},

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
	"GET /v1/cluster/removed":              {name: "listRemoved", summary: "Lists the nodes that were removed and must not join again.", reply: "RemovedNodes"},
	"DELETE /v1/cluster/removed/{id}":      {name: "admitNode", summary: "Lets a node that was removed join again.", reply: "Done"},
	"GET /v1/cluster/admission":            {name: "getAdmission", summary: "Shows what a node needs to become a member.", reply: "Admission"},
	"PUT /v1/cluster/admission":            {name: "setAdmission", summary: "Sets what a node needs to become a member.", request: "AdmissionRequest", required: []string{"mode"}, reply: "Admission"},
	"GET /v1/cluster/invitations":          {name: "listInvitations", summary: "Lists the invitations by their ids, without their texts.", reply: "Invitations"},
	"POST /v1/cluster/invitations":         {name: "invite", summary: "Makes an invitation, with which one node may become a member, and shows its text this once.", request: "InvitationRequest", reply: "Invited", statuses: "201"},
	"DELETE /v1/cluster/invitations/{id}":  {name: "uninvite", summary: "Revokes an invitation.", reply: "Uninvited"},
	"GET /v1/cluster/health":               {name: "getHealth", summary: "Reports whether the cluster is healthy.", reply: "Health"},
	"GET /v1/cluster/clock":                {name: "getClocks", summary: "Compares the clocks of the nodes.", reply: "Clocks"},
	"POST /v1/cluster/clock/reset":         {name: "resetClock", summary: "Sets the queue's clock back to the majority's.", reply: "Done"},
	"GET /v1/cluster/keyring":              {name: "getKeyring", summary: "Lists the keys that encrypt gossip, by their fingerprints.", reply: "Keyring"},
	"POST /v1/cluster/keyring/install":     {name: "installKey", summary: "Makes a gossip key on all nodes, which decrypts from now on.", reply: "Keyring"},
	"POST /v1/cluster/keyring/{key}/use":   {name: "useKey", summary: "Makes all nodes encrypt gossip with a key that they have.", reply: "Keyring"},
	"DELETE /v1/cluster/keyring/{key}":     {name: "removeKey", summary: "Removes a gossip key from all nodes.", reply: "Keyring"},
	"GET /v1/cluster/backup":               {name: "backup", summary: "Streams a backup of the state that this node has.", content: backupType},
	"POST /v1/cluster/backup":              {name: "backupSince", summary: "Streams a backup that has what an earlier one, its base, does not have.", sends: "text/plain", content: backupType},
	"POST /v1/cluster/restore":             {name: "restore", summary: "Replaces the state of the whole cluster by a backup.", sends: backupType, reply: "Restored"},
	"GET /v1/cluster/backups":              {name: "listBackups", summary: "Lists the scheduled backups that the nodes have.", reply: "ScheduledBackups"},
	"GET /v1/cluster/log":                  {name: "streamLog", summary: "Streams the log to a standby.", required: []string{"index", "term", "cluster"}, content: backupType},
	"GET /v1/cluster/standby":              {name: "getStandby", summary: "Shows how far a standby is behind its primary.", reply: "Standby"},
	"POST /v1/cluster/standby/promote":     {name: "promoteStandby", summary: "Makes a standby take operations of clients, for good.", request: "PromoteRequest", reply: "Standby"},
	"GET /v1/cluster/events":               {name: "listEvents", summary: "Lists what this node has seen happen to the cluster.", reply: "ClusterEvents"},
	"GET /v1/cluster/node":                 {name: "getNode", summary: "Shows the build and the settings of this node, without secrets.", reply: "Node"},
	"GET /v1/cluster/node/log":             {name: "getNodeLog", summary: "Shows the last lines of this node's log.", reply: "NodeLog"},
	"PUT /v1/cluster/node/log":             {name: "setLogLevel", summary: "Sets the lowest level that this node logs, until its next SIGHUP or restart.", request: "LogLevelRequest", required: []string{"level"}, reply: "LogLevel"},
	"POST /v1/cluster/drain":               {name: "drainNode", summary: "Drains this node: clients and leadership move to others.", reply: "Done"},
	"DELETE /v1/cluster/drain":             {name: "undrainNode", summary: "Ends the drain of this node.", reply: "Done"},
	"POST /v1/cluster/verify":              {name: "verify", summary: "Compares the state of all nodes.", reply: "Verification"},
	"POST /v1/cluster/join":                {name: "join", summary: "Makes this node join a cluster.", request: "JoinRequest", required: []string{"addresses"}, reply: "Done"},
	"POST /v1/cluster/leave":               {name: "leave", summary: "Removes this node from its cluster and stops it.", reply: "Done"},
	"GET /v1/whoami":                       {name: "whoAmI", summary: "Shows which token the call has, and what it may do.", reply: "WhoAmI"},
	"GET /v1/tokens":                       {name: "listTokens", summary: "Lists the tokens by their ids, without their texts.", reply: "TokenPage"},
	"GET /v1/tokens/{id}":                  {name: "getToken", summary: "Shows a token, without its text.", reply: "TokenReply"},
	"PUT /v1/tokens/{id}":                  {name: "putToken", summary: "Makes a token, and shows its text this once, or changes what one may do.", request: "TokenRequest", required: []string{"rules"}, reply: "TokenPut", statuses: "200 201"},
	"DELETE /v1/tokens/{id}":               {name: "deleteToken", summary: "Revokes a token.", reply: "TokenDeleted"},
	"POST /v1/tokens/{id}/rotate":          {name: "rotateToken", summary: "Gives a token a new text. The one before is accepted for a while.", request: "RotateRequest", reply: "TokenPut", statuses: "200 201"},
	"GET /v1/namespaces":                   {name: "listNamespaces", summary: "Lists the namespaces by their names, with what they hold: those whose topics the caller may read, or all with the verb observe.", reply: "Namespaces"},
	"GET /v1/namespaces/{namespace}":       {name: "getNamespace", summary: "Shows a namespace and what it holds.", reply: "NamespaceReply"},
	"PUT /v1/namespaces/{namespace}":       {name: "putNamespace", summary: "Makes or replaces a namespace.", request: "NamespaceRequest", required: []string{"topic_prefix"}, reply: "NamespacePut"},
	"DELETE /v1/namespaces/{namespace}":    {name: "deleteNamespace", summary: "Removes a namespace. Its topics and jobs stay.", reply: "NamespaceDeleted"},
	"GET /v1/auth":                         {name: "getAuth", summary: "Shows whether tokens are needed, and what is allowed without one.", reply: "Auth"},
	"PUT /v1/auth":                         {name: "putAuth", summary: "Sets whether tokens are needed, and what is allowed without one.", request: "AuthRequest", required: []string{"mode"}, reply: "AuthPut"},
	"POST /v1/auth/bootstrap":              {name: "bootstrap", summary: "Makes the first token, for who can read the data directory of the node.", request: "BootstrapRequest", required: []string{"secret"}, reply: "TokenPut", statuses: "201"},
	"GET /v1/secrets":                      {name: "listSecretKeys", summary: "Lists the keys that seal secrets, by their ids, and how many secrets each has sealed.", reply: "SecretKeys"},
	"POST /v1/secrets/rewrap":              {name: "rewrapSecrets", summary: "Seals all secrets with the first key of this node.", reply: "Rewrapped"},
	"GET /v1/openapi.json":                 {name: "getOpenAPI", summary: "This description.", reply: "Description"},
	"GET /livez":                           {name: "livez", summary: "Answers while the process runs.", reply: "Done"},
	"GET /readyz":                          {name: "readyz", summary: "Reports whether this node can serve clients.", reply: "Readiness", statuses: "200 503"},
	"POST /v1/cluster/transfer-leadership": {name: "transferLeadership", summary: "Hands leadership to another node.", request: "TransferRequest", reply: "Transfer"},
}
