package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// A reference with an id and a seq names a job only if both are its own.
func TestAnIDAndASeqOfDifferentJobsNameNone(t *testing.T) {
	r := newRig(t, Options{})
	a := r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t", Body: []byte("x")})).Seq
	b := r.one(opAdd(&jobpb.Add{Id: "b", Topic: "t", Body: []byte("x")})).Seq
	unnamed := r.one(opAdd(&jobpb.Add{Topic: "t", Body: []byte("x")}))
	for _, ref := range []*jobpb.Ref{{Id: "a", Seq: b}, {Id: "c", Seq: a}, {Id: unnamed.Id, Seq: a}, {Id: "a", Seq: unnamed.Seq}, {Id: "a", Seq: 99}} {
		require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opDelete(ref)).Code, "%v", ref)
	}
	for _, ref := range []*jobpb.Ref{{Id: "a", Seq: a}, {Seq: b}, {Id: unnamed.Id, Seq: unnamed.Seq}} {
		require.Equal(t, jobpb.Code_OK, r.one(opDelete(ref)).Code, "%v", ref)
	}
	r.check()
}
