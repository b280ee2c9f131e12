//go:build chaos && next

package api

import (
	"strconv"

	"tarry/api/access"
	"tarry/job"
	"tarry/job/jobpb"
)

// This build stands for the next release; see job/next.go. A job is stamped by the
// new operation, or by the new field of an update with ?stamps=N.
func (s *server) nextRoutes() []route {
	return []route{{path: "/v1/jobs/{id}/stamp", methods: methods{"POST": {need: access.NeedManage, handle: s.stamp, query: []string{"stamps"}}}}}
}

func (s *server) stamp(x *call) error {
	id, err := x.pathID()
	if err != nil {
		return err
	}
	ref := &jobpb.Ref{Id: id}
	op := &jobpb.Op{Kind: &jobpb.Op_Stamp{Stamp: &jobpb.Finish{Ref: ref}}}
	if text := x.r.URL.Query().Get("stamps"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return job.Invalid("stamps", "is %.40q; it must be a number", text)
		}
		update := &jobpb.Update{Ref: ref}
		update.SetStamps(uint32(n))
		op = &jobpb.Op{Kind: &jobpb.Op_Update{Update: update}}
	}
	r, err := s.doOne(x, op)
	if err != nil {
		return err
	}
	x.json.success()
	x.json.number("stamps", uint64(r.Count))
	x.json.endObject()
	return nil
}
