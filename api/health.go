package api

import "net/http"

// livez answers while the process serves at all. It asks nobody: a node without
// a leader is alive, and restarting it would not help.
func (s *server) livez(x *exchange) error {
	x.json.success()
	x.json.shut()
	return nil
}

// readyz says whether clients should be sent to this node.
func (s *server) readyz(x *exchange) error {
	r := s.Operator.Readiness()
	if s.Draining() {
		r.Ready = false
		r.Reasons = append([]string{"the node is draining before it stops"}, r.Reasons...)
	}
	x.json.open()
	x.json.boolean("success", r.Ready)
	if !r.Ready {
		x.status = http.StatusServiceUnavailable
		x.w.Header().Set("Retry-After", "1")
		x.json.text("code", string(codeNotReady))
		x.json.text("error", firstReason(r.Reasons))
	}
	x.json.boolean("ready", r.Ready)
	x.json.texts("reasons", r.Reasons)
	x.json.texts("warnings", r.Warnings)
	x.json.text("leader", r.Leader)
	x.json.shut()
	return nil
}

func firstReason(reasons []string) string {
	if len(reasons) == 0 {
		return "the node is not ready"
	}
	return reasons[0]
}
