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
	return append(s.nextRoutes(), []route{
		{path: "/v1/jobs", methods: methods{http.MethodPost: with(s.add), http.MethodGet: on(s.listJobs, append([]string{"topic"}, listQuery...)...)}},
		{path: "/v1/reserve", methods: post(s.reserve)},
		{path: "/v1/stream", methods: methods{http.MethodGet: on(s.stream, streamQuery...), http.MethodPost: with(s.stream, streamQuery...)}},
		{path: "/v1/jobs/{id}/finish", methods: post(s.finish)},
		// "batch" is also a job's id like any other.
		{path: "/v1/jobs/{id:batch}", methods: methods{
			http.MethodPost: with(s.addBatch), http.MethodGet: on(s.getJob, "consistency"),
			http.MethodPatch: with(s.updateJob), http.MethodDelete: on(s.deleteJob, deleteQuery...),
		}},
		{path: "/v1/finish", methods: post(s.changeMany(verbFinish))},
		{path: "/", methods: post(s.command)},

		{path: "/v1/jobs/{id}", methods: methods{
			http.MethodGet: on(s.getJob, "consistency"), http.MethodPatch: with(s.updateJob), http.MethodDelete: on(s.deleteJob, deleteQuery...),
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

		{path: "/v1/stats", methods: get(s.stats, "consistency")},
		{path: "/v1/topics", methods: get(s.topics, "after", "max", "consistency")},
		{path: "/v1/topics/{topic}", methods: get(s.topic, "consistency")},
		{path: "/v1/topics/{topic}/jobs", methods: get(s.listTopic, listQuery...)},
		{path: "/v1/topics/{topic}/kick", methods: managing(post(s.kickTopic))},
		{path: "/v1/topics/{topic}/pause", methods: managing(post(s.pauseTopic))},
		{path: "/v1/topics/{topic}/resume", methods: managing(do(s.resumeTopic))},
		{path: "/v1/topics/{topic}/settings", methods: managing(methods{
			http.MethodGet: on(s.getSettings, "consistency"), http.MethodPut: with(s.putSettings, "if_revision"),
			http.MethodPatch: with(s.patchSettings, "if_revision"), http.MethodDelete: on(s.deleteSettings, "if_revision"),
		})},
		{path: "/v1/topic-settings", methods: get(s.topicSettings, "after", "max", "consistency")},
		{path: "/v1/topics/{topic}/purge", methods: managing(post(s.purge))},
		{path: "/v1/topics/{topic}/move", methods: managing(post(s.moveTopic))},

		{path: "/v1/schedules", methods: get(s.schedules, "after", "max", "consistency")},
		{path: "/v1/schedules/preview", methods: post(s.previewSpec)},
		{path: "/v1/schedules/{name}", methods: managing(methods{
			http.MethodGet: on(s.getSchedule, "consistency"), http.MethodPut: with(s.putSchedule), http.MethodDelete: on(s.deleteSchedule, "if_revision"),
		})},
		{path: "/v1/schedules/{name}/preview", methods: get(s.previewSchedule, "count")},
		{path: "/v1/schedules/{name}/runs", methods: get(s.scheduleRuns, "consistency")},
		{path: "/v1/schedules/{name}/run", methods: managing(post(s.runSchedule))},
		{path: "/v1/schedules/{name}/pause", methods: managing(do(s.pauseSchedule(true)))},
		{path: "/v1/schedules/{name}/resume", methods: managing(do(s.pauseSchedule(false)))},

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
	}...)
}
