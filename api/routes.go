package api

import (
	"slices"
	"strings"

	"tarry/api/access"
	"tarry/api/wire"
	"tarry/cluster/report"
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

// endpoint is a row of wire.Calls with its handler.
type endpoint struct {
	need    access.Need
	handle  handlerFunc
	query   []string // the parameters that it knows
	body    bool     // it takes a request body
	manages bool
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

// routes is the whole HTTP API except /metrics, in the order of wire.Calls.
func (s *server) routes() []route {
	routes := s.nextRoutes()
	at := map[string]methods{}
	for i := range wire.Calls {
		c := &wire.Calls[i]
		path := c.Route()
		if at[path] == nil {
			at[path] = methods{}
			routes = append(routes, route{path: path, methods: at[path]})
		}
		handle := handlers[c.Name]
		at[path][c.Method()] = endpoint{need: c.Need, handle: func(x *call) error { return handle(s, x) }, query: wire.Names(c.Query), body: c.TakesBody(), manages: c.Manages}
	}
	// "batch" and "kick" are also ids of jobs like any other.
	for path, of := range at {
		if strings.HasPrefix(path, "/v1/jobs/{id:") {
			for method, e := range at["/v1/jobs/{id}"] {
				if _, own := of[method]; !own {
					of[method] = e
				}
			}
		}
	}
	return routes
}

// handlers are those of wire.Calls by their names.
var handlers = map[string]func(*server, *call) error{
	"addJob":             (*server).add,
	"findJobs":           (*server).listJobs,
	"updateJobs":         answer((*server).updateFound),
	"deleteJobs":         answer((*server).deleteFound),
	"reserve":            (*server).reserve,
	"streamByRequest":    (*server).stream,
	"stream":             (*server).stream,
	"finishJob":          (*server).finish,
	"addJobs":            (*server).addBatch,
	"kickJobs":           mayTake((*server).kickFound),
	"finishJobs":         changeMany(verbFinish),
	"command":            (*server).command,
	"getJob":             (*server).getJob,
	"updateJob":          (*server).updateJob,
	"deleteJob":          (*server).deleteJob,
	"releaseJob":         changeOne(verbRelease),
	"touchJob":           changeOne(verbTouch),
	"buryJob":            changeOne(verbBury),
	"kickJob":            changeOne(verbKick),
	"moveJob":            changeOne(verbMove),
	"getHistory":         answer((*server).jobHistory),
	"explainJob":         answer((*server).explainJob),
	"releaseJobs":        changeMany(verbRelease),
	"touchJobs":          changeMany(verbTouch),
	"buryJobs":           changeMany(verbBury),
	"getJobs":            (*server).getMany,
	"kickJobsById":       changeMany(verbKick),
	"deleteJobsById":     changeMany(verbDelete),
	"updateJobsById":     (*server).updateMany,
	"importJobs":         (*server).importJobs,
	"getStats":           answer((*server).stats),
	"getRates":           answer((*server).rates),
	"getForecast":        answer((*server).forecast),
	"getForecastTopics":  answer((*server).forecastTopics),
	"getDead":            answer((*server).dead),
	"getDeadTopics":      answer((*server).deadTopics),
	"kickDead":           take((*server).kickDead),
	"purgeDead":          take((*server).purgeDead),
	"listTopics":         answer((*server).topics),
	"getTopic":           answer((*server).topic),
	"getTopicRates":      answer((*server).topicRates),
	"getTopicForecast":   answer((*server).topicForecast),
	"getTopicDead":       answer((*server).topicDead),
	"listJobs":           (*server).listTopic,
	"kickTopic":          take((*server).kickTopic),
	"releaseTopic":       take((*server).releaseTopic),
	"rescheduleTopic":    take((*server).rescheduleTopic),
	"pauseTopic":         mayTake((*server).pauseTopic),
	"resumeTopic":        answer((*server).resumeTopic),
	"getSettings":        (*server).getSettings,
	"putSettings":        (*server).putSettings,
	"patchSettings":      (*server).patchSettings,
	"deleteSettings":     (*server).deleteSettings,
	"listSettings":       (*server).topicSettings,
	"purgeTopic":         take((*server).purge),
	"moveTopic":          take((*server).moveTopic),
	"listSchedules":      (*server).schedules,
	"previewSpec":        take((*server).previewSpec),
	"getSchedule":        (*server).getSchedule,
	"putSchedule":        take((*server).putSchedule),
	"deleteSchedule":     answer((*server).deleteSchedule),
	"previewSchedule":    answer((*server).previewSchedule),
	"getRuns":            answer((*server).scheduleRuns),
	"runSchedule":        (*server).runSchedule,
	"pauseSchedule":      pauseSchedule(true),
	"resumeSchedule":     pauseSchedule(false),
	"whoAmI":             answer((*server).whoami),
	"listTokens":         answer((*server).tokens),
	"getToken":           answer((*server).getToken),
	"putToken":           take((*server).putToken),
	"deleteToken":        answer((*server).deleteToken),
	"rotateToken":        mayTake((*server).rotateToken),
	"getAuth":            answer((*server).getAuth),
	"putAuth":            take((*server).putAuth),
	"listSecretKeys":     answer((*server).secrets),
	"rewrapSecrets":      answer((*server).rewrapSecrets),
	"bootstrap":          take((*server).bootstrap),
	"listNamespaces":     answer((*server).namespaces),
	"getNamespace":       answer((*server).getNamespace),
	"putNamespace":       take((*server).putNamespace),
	"deleteNamespace":    answer((*server).deleteNamespace),
	"listMembers":        answer((*server).members),
	"listShards":         answer((*server).shards),
	"removeMember":       (*server).removeMember,
	"listRemoved":        answer((*server).removedNodes),
	"admitNode":          (*server).admitNode,
	"getAdmission":       answer((*server).getAdmission),
	"setAdmission":       take((*server).putAdmission),
	"invite":             mayTake((*server).invite),
	"listInvitations":    answer((*server).invitations),
	"uninvite":           answer((*server).uninvite),
	"getHealth":          answer((*server).health),
	"getClocks":          answer((*server).clock),
	"resetClock":         (*server).resetClock,
	"getKeyring":         answer((*server).keyring),
	"installKey":         answer((*server).installKey),
	"removeKey":          changeKey(report.KeyringChange_REMOVE),
	"useKey":             changeKey(report.KeyringChange_USE),
	"backupSince":        (*server).backup,
	"backup":             (*server).backup,
	"restore":            answer((*server).restore),
	"streamLog":          (*server).clusterLog,
	"getStandby":         (*server).standby,
	"promoteStandby":     (*server).promoteStandby,
	"listBackups":        answer((*server).scheduledBackups),
	"transferLeadership": mayTake((*server).transferLeadership),
	"listEvents":         (*server).events,
	"getNode":            answer((*server).about),
	"getNodeLog":         (*server).nodeLog,
	"setLogLevel":        take((*server).putLogLevel),
	"drainNode":          drain(true),
	"undrainNode":        drain(false),
	"verify":             answer((*server).verify),
	"join":               (*server).join,
	"leave":              (*server).leave,
	"getOpenAPI":         (*server).openAPI,
	"livez":              answer((*server).livez),
	"readyz":             (*server).readyz,
}
