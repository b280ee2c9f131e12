package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// resultMembers has the calls of which a client returns a list, a number or a truth value, or counts
// jobs in a member that is named count: the member in which cases find it.
var resultMembers = map[string]string{
	"add_batch": "results", "add_all": "results", "get_batch": "results", "finish_batch": "results",
	"delete_batch": "results", "kick_batch": "results", "update_batch": "results", "finish_then": "results",
	"reserve": "jobs", "jobs": "jobs",
	"delete_jobs": "deleted", "update_jobs": "updated", "kick_jobs": "kicked",
	"kick_topic": "kicked", "purge": "deleted", "move_topic": "moved", "release_topic": "released", "reschedule": "rescheduled",
	"kick_dead": "kicked", "purge_dead": "deleted",
	"topics": "topics", "all_settings": "topics",
	"schedules": "schedules", "schedule_runs": "runs", "preview_schedule": "runs", "preview_spec": "runs",
	"tokens": "tokens", "namespaces": "namespaces",
	"members": "members", "transfer_leadership": "moved",
}

// named gives what a client returned the names that it has in the HTTP API.
func named(call string, result any) any {
	member := resultMembers[call]
	switch r := result.(type) {
	case nil:
		return object{}
	case object:
		if count, is := r["count"]; is && member != "" {
			r[member] = count
		}
		if call == "finish_and_reserve" {
			withoutNull(r["finished"])
		}
		return r
	case []any:
		if call == "finish_and_reserve" && len(r) == 2 {
			return named(call, object{"jobs": r[0], "finished": r[1]})
		}
		return object{member: withoutNull(r)}
	}
	return object{member: result}
}

// withoutNull makes an object of each null in a list: an item that succeeded with no more to say.
func withoutNull(list any) any {
	items, _ := list.([]any)
	for i := range items {
		if items[i] == nil {
			items[i] = object{}
		}
	}
	return list
}

func TestConformanceNamesResults(t *testing.T) {
	for call, c := range map[string]struct{ returned, named any }{
		"finish":              {nil, object{}},
		"topic":               {object{"ready": 1.0}, object{"ready": 1.0}},
		"purge":               {object{"count": 2.0, "more": true}, object{"count": 2.0, "deleted": 2.0, "more": true}},
		"transfer_leadership": {true, object{"moved": true}},
		"finish_batch":        {[]any{nil, object{"code": "x"}}, object{"results": []any{object{}, object{"code": "x"}}}},
		"finish_and_reserve":  {[]any{[]any{}, []any{nil}}, object{"jobs": []any{}, "finished": []any{object{}}}},
	} {
		require.Equal(t, c.named, named(call, c.returned), call)
	}
	require.Equal(t, object{"jobs": []any{}, "finished": []any{object{}}}, named("finish_and_reserve", object{"jobs": []any{}, "finished": []any{nil}}))
}
