package fsm

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func TestSmoke(t *testing.T) {
	m, err := Open("/d", Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	data, err := job.AppendOp(job.AppendEntryHeader(nil, 1000), &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Id: "a", Topic: "t", Body: []byte("x"), TtrMs: 1000}}})
	require.NoError(t, err)
	data, err = job.AppendOp(data, &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{Topics: []string{"t"}, Max: 5}}})
	require.NoError(t, err)
	rs, ch, err := m.Apply([]Entry{{Index: 1, Term: 1, Data: data}}, true)
	require.NoError(t, err)
	t.Log(rs, ch)
	v := m.View()
	j, ok, err := v.Job("a")
	require.NoError(t, err)
	t.Log(j, ok)
	require.NoError(t, v.Close())
	require.NoError(t, m.Close())
}
