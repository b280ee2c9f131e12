package push

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func TestTheHeadersOfAJobAreSentAsFarAsHTTPCan(t *testing.T) {
	posts := make(chan http.Header, 1)
	r := newRig(t, func(_ http.ResponseWriter, q *http.Request) { posts <- q.Header })
	r.target(nil)
	list := []*jobpb.Header{
		{Name: "trace-id", Value: "abc"},
		{Name: "Trace-Id", Value: "def"},
		{Name: "x_y.z~1", Value: "two\twords \"quoted\""},
		{Name: "empty"},
		{Name: "Topic", Value: "not the topic"},
		{Name: "long", Value: strings.Repeat("v", 7000)},

		{Name: "two words", Value: "v"},
		{Name: "name:", Value: "v"},
		{Name: "größe", Value: "v"},
		{Name: "value-not-ascii", Value: "ü"},
		{Name: "value-of-lines", Value: "v\r\nTarry-Signature: v1=00"},
		{Name: "value-with-nul", Value: "\x00"},
		{Name: "value-with-del", Value: "\x7f"},
		{Name: "value-padded", Value: "v "},
		{Name: "value-indented", Value: "\tv"},
	}
	slices.SortFunc(list, func(a, b *jobpb.Header) int { return cmp.Compare(a.Name, b.Name) })
	r.add(&jobpb.Add{Id: "a", Options: &jobpb.JobOptions{Headers: list}})
	got := <-posts
	require.Equal(t, []string{"t"}, got.Values("Tarry-Topic"))
	require.Len(t, got.Values("Tarry-Signature"), 1)
	require.NotContains(t, got, "Traceparent")
	own := http.Header{}
	for name, values := range got {
		if strings.HasPrefix(name, "Tarry-Header-") {
			own[name] = values
		}
	}
	require.Equal(t, http.Header{
		"Tarry-Header-Trace-Id": {"def", "abc"},
		"Tarry-Header-X_y.z~1":  {"two\twords \"quoted\""},
		"Tarry-Header-Empty":    {""},
		"Tarry-Header-Topic":    {"not the topic"},
		"Tarry-Header-Long":     {strings.Repeat("v", 7000)},
	}, own)
	r.becomes("a", jobpb.State_STATE_NONE)
}

func TestAPostHasTheTraceOfItsJob(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	posts := make(chan http.Header, 1)
	r := newRig(t, func(_ http.ResponseWriter, q *http.Request) { posts <- q.Header })
	r.target(nil)
	for i, c := range []struct{ parent, state, wantParent, wantState string }{
		{parent, "a=1", parent, "a=1"},
		{parent, "", parent, ""},
		{"00-mine", "a=1", "", ""},
	} {
		list := []*jobpb.Header{{Name: "traceparent", Value: c.parent}}
		if c.state != "" {
			list = append(list, &jobpb.Header{Name: "tracestate", Value: c.state})
		}
		id := strconv.Itoa(i)
		r.add(&jobpb.Add{Id: id, Options: &jobpb.JobOptions{Headers: list}})
		got := <-posts
		require.Equal(t, c.wantParent, got.Get("traceparent"))
		require.Equal(t, c.wantState, got.Get("tracestate"))
		require.Equal(t, c.parent, got.Get("Tarry-Header-Traceparent"), "as every header of the job")
		r.becomes(id, jobpb.State_STATE_NONE)
	}
}
