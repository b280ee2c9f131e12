package ui

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"tarry/client"
)

// clusterView is the data of the page of the cluster.
type clusterView struct {
	Health  client.Health
	Members []memberRow
	// Ahead is set if the queue's clock is ahead of the majority's by more than the allowed
	// offset, in seconds; it can be reset.
	Ahead float64
	// Unknown is what this node could not learn, and why.
	Unknown []string
}

// memberRow is a node with its clock.
type memberRow struct {
	client.Member
	Clock *client.NodeClock // nil: not known
}

// showCluster lists the nodes. What cannot be learned while there is no leader is left out,
// and the page says so: this page matters most when the cluster is not well.
func showCluster(q *request) (any, error) {
	v := &clusterView{}
	var members struct {
		Members []client.Member `json:"members"`
	}
	var clocks client.Clocks
	parts := []struct {
		of, path string
		out      any
		failed   *failure
	}{
		{of: "The members are", path: "/v1/cluster/members", out: &members},
		{of: "The health is", path: "/v1/cluster/health", out: &v.Health},
		{of: "The clocks are", path: "/v1/cluster/clock", out: &clocks},
	}
	ctx, cancel := context.WithTimeout(q.r.Context(), readLimit)
	defer cancel()
	var calls sync.WaitGroup // each may look for a leader for a while
	for i := range parts {
		part := &parts[i]
		calls.Go(func() { part.failed = q.api.get(ctx, part.path, part.out) })
	}
	calls.Wait()
	for _, part := range parts {
		if f := part.failed; f != nil && (f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden) {
			return nil, f
		}
		if part.failed != nil {
			v.Unknown = append(v.Unknown, fmt.Sprintf("%s not known: %s", part.of, part.failed.Message))
		}
	}
	of := map[string]*client.NodeClock{}
	for i := range clocks.Clocks {
		of[clocks.Clocks[i].ID] = &clocks.Clocks[i]
	}
	for _, m := range members.Members {
		v.Members = append(v.Members, memberRow{m, of[m.ID]})
	}
	if clocks.Agreed && clocks.ClusterAhead > clocks.MaxOffset {
		v.Ahead = clocks.ClusterAhead
	}
	return v, nil
}

const clusterPath = Root + "cluster"

// verifyCluster compares the states of all nodes.
func verifyCluster(q *request) (*outcome, error) {
	if !q.confirmed() {
		return &outcome{confirm: &confirm{
			Title: "Compare the states of all nodes?", Verb: "Compare",
			Text: "Each node reads its whole state once, and their digests are compared at one entry of the log. That takes seconds with a million jobs.",
		}}, nil
	}
	var v client.Verification
	if err := q.do("/v1/cluster/verify", nil, &v); err != nil {
		return nil, err
	}
	if v.Equal {
		return &outcome{to: clusterPath, flash: fmt.Sprintf("All %d nodes have the same state at index %d.", len(v.Digests), v.Index)}, nil
	}
	var each []string
	for _, d := range v.Digests {
		each = append(each, fmt.Sprintf("%s: %s", d.ID, orElse(d.Error, d.Digest)))
	}
	return nil, &failure{Status: http.StatusConflict, Code: "conflict", Message: fmt.Sprintf("the states at index %d could not be found equal: %s", v.Index, strings.Join(each, ", "))}
}

// orElse returns text, or other if text is empty.
func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

// transferLeadership hands leadership to a node.
func transferLeadership(q *request) (*outcome, error) {
	id, err := q.required("node")
	if err != nil {
		return nil, err
	}
	if !q.confirmed() {
		return &outcome{confirm: &confirm{
			Title: "Make " + id + " the leader?", Verb: "Make it the leader",
			Text: "Calls in progress wait for some milliseconds, and nothing is lost.",
		}}, nil
	}
	if err := q.do("/v1/cluster/transfer-leadership", map[string]string{"id": id}, nil); err != nil {
		return nil, err
	}
	return &outcome{to: clusterPath, flash: "Node " + id + " leads."}, nil
}

// removeMember removes a node for good.
func removeMember(q *request) (*outcome, error) {
	id, err := q.required("node")
	if err != nil {
		return nil, err
	}
	if !q.confirmed() {
		return &outcome{confirm: &confirm{
			Title: "Remove node " + id + "?", Verb: "Remove " + id, Danger: true,
			Text: "It is removed from the cluster for good: to come back, it needs an empty data directory, and copies all jobs again. A node that is only restarted need not be removed.",
		}}, nil
	}
	if err := q.send(http.MethodDelete, "/v1/cluster/members/"+segment(id), nil, nil); err != nil {
		return nil, err
	}
	return &outcome{to: clusterPath, flash: "Node " + id + " is removed."}, nil
}

// resetClock sets the queue's clock back to the majority's.
func resetClock(q *request) (*outcome, error) {
	if !q.confirmed() {
		return &outcome{confirm: &confirm{
			Title: "Set the queue's clock back?", Verb: "Set it back", Danger: true,
			Text: "The queue's time becomes that of the majority of the nodes. Jobs that came early stay ready; delays that were asked for since then are shortened to what they would have been. docs/operations.md lists what changes.",
		}}, nil
	}
	if err := q.do("/v1/cluster/clock/reset", nil, nil); err != nil {
		return nil, err
	}
	return &outcome{to: clusterPath, flash: "The queue's clock is set back."}, nil
}
