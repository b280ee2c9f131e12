package ui

import (
	"fmt"
)

const movePath = Root + "jobs/move"

// moveJobs moves the jobs that a form selects to another topic. The API moves them one by
// one, so a failure leaves those before it moved.
func moveJobs(q *request) (*outcome, error) {
	ids := q.r.PostForm["id"]
	if len(ids) == 0 {
		return nil, invalid("", "No job is selected.")
	}
	to, err := q.required("to")
	if err != nil {
		return nil, err
	}
	if !q.confirmed() {
		jobs := plural(uint64(len(ids)), "job")
		return &outcome{confirm: &confirm{
			Title: fmt.Sprintf("Move %s to %s?", jobs, to), Verb: "Move " + jobs, Text: moveAll.text, Items: ids,
		}}, nil
	}
	for i, id := range ids {
		if f := q.api.call(q.r.Context(), "POST", "/v1/jobs/"+segment(id)+"/move", map[string]any{"to": to}, &struct{}{}); f != nil {
			if i > 0 {
				f = f.after(fmt.Sprintf("%s of %d moved", plural(uint64(i), "job"), len(ids)))
			}
			return nil, f
		}
	}
	return &outcome{to: q.back(address(Root+"topic", "topic", to)), flash: fmt.Sprintf("%s moved to %s.", plural(uint64(len(ids)), "job"), to)}, nil
}
