package api

import (
	"net/http"
	"slices"
	"strings"
)

// route is one path with its calls by method and the query parameters it knows.
type route struct {
	path    string
	methods methods
	query   []string
}

// allow is the value of the Allow header.
func (rt route) allow() string {
	var names []string
	for name := range rt.methods {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func get(h call) methods  { return methods{http.MethodGet: h} }
func post(h call) methods { return methods{http.MethodPost: h} }

// jobQuery are the parameters that one of the calls on /v1/jobs/{id} takes.
var jobQuery = []string{"consistency", "token", "if_revision", "if_state"}

// routes is the whole HTTP surface but /metrics. The router tries paths in this
// order, so the busy ones come first.
func (s *server) routes() []route {
	return []route{
		{path: "/v1/jobs", methods: post(s.add)},
		{path: "/v1/reserve", methods: post(s.reserve)},
		{path: "/v1/jobs/{id}/finish", methods: post(s.finish)},
		// "batch" is also a job's id like any other.
		{path: "/v1/jobs/{id:batch}", methods: methods{http.MethodPost: s.addBatch, http.MethodGet: s.getJob, http.MethodPatch: s.updateJob, http.MethodDelete: s.deleteJob}, query: jobQuery},
		{path: "/v1/finish", methods: post(s.changeMany(verbFinish))},
		{path: "/", methods: post(s.command)},

		{path: "/v1/jobs/{id}", methods: methods{http.MethodGet: s.getJob, http.MethodPatch: s.updateJob, http.MethodDelete: s.deleteJob}, query: jobQuery},
		{path: "/v1/jobs/{id}/release", methods: post(s.changeOne(verbRelease))},
		{path: "/v1/jobs/{id}/touch", methods: post(s.changeOne(verbTouch))},
		{path: "/v1/jobs/{id}/bury", methods: post(s.changeOne(verbBury))},
		{path: "/v1/jobs/{id}/kick", methods: post(s.changeOne(verbKick))},
		{path: "/v1/release", methods: post(s.changeMany(verbRelease))},
		{path: "/v1/touch", methods: post(s.changeMany(verbTouch))},
		{path: "/v1/bury", methods: post(s.changeMany(verbBury))},

		{path: "/v1/topics", methods: get(s.topics), query: []string{"after", "max", "consistency"}},
		{path: "/v1/topics/{topic}", methods: get(s.topic), query: []string{"consistency"}},
		{path: "/v1/topics/{topic}/kick", methods: post(s.kickTopic)},

		{path: "/v1/cluster/members", methods: get(s.members)},
		{path: "/v1/cluster/members/{id}", methods: methods{http.MethodDelete: s.removeMember}},
		{path: "/v1/cluster/health", methods: get(s.health)},
		{path: "/v1/cluster/transfer-leadership", methods: post(s.transferLeadership)},
		{path: "/v1/cluster/verify", methods: post(s.verify)},
		{path: "/v1/cluster/join", methods: post(s.join)},
		{path: "/v1/cluster/leave", methods: post(s.leave)},

		{path: "/livez", methods: get(s.livez)},
		{path: "/readyz", methods: get(s.readyz)},
	}
}
