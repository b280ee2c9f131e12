package api

import (
	"net/http"

	"tarry/api/wire"
	"tarry/auth"
)

// livez succeeds while the process serves requests. It does not depend on a leader:
// restarting a node without one would not help.
func (s *server) livez(*call) (wire.Done, error) { return wire.Done{}, nil }

// readyz reports whether this node should get requests.
func (s *server) readyz(x *call) error {
	r := s.Operator.Readiness()
	details := s.shows(x, auth.Observe)
	if r.Ready && s.Draining() {
		r.Ready = false
		r.Reasons = append([]string{"the node is draining before it stops"}, r.Reasons...)
	}
	if r.Ready && !s.Access.IsReady() {
		r.Ready = false
		r.Reasons = append(r.Reasons, "the node has not caught up with the leader since it started")
	}
	x.json.beginObject()
	x.json.boolean("success", r.Ready)
	if !r.Ready {
		x.status = http.StatusServiceUnavailable
		x.w.Header().Set("Retry-After", "1")
		x.json.text("code", string(codeNotReady))
		if !details {
			r.Reasons = nil
		}
		x.json.text("error", firstReason(r.Reasons))
	}
	if !details { // whoever may reach the port
		r.Reasons, r.Warnings, r.Leader = nil, nil, ""
	}
	x.json.boolean("ready", r.Ready)
	x.json.texts("reasons", r.Reasons)
	x.json.texts("warnings", r.Warnings)
	x.json.text("leader", r.Leader)
	x.json.endObject()
	return nil
}

func firstReason(reasons []string) string {
	if len(reasons) == 0 {
		return "the node is not ready"
	}
	return reasons[0]
}
