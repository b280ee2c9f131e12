package job

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

const sampleTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTraceParents(t *testing.T) {
	for _, c := range []struct {
		value string
		valid bool
	}{
		{sampleTrace, true},
		{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", true},
		{"cc" + sampleTrace[2:], true},
		{"cc" + sampleTrace[2:] + "-what-the-future-will-be-like", true},
		{"", false},
		{sampleTrace[:54], false},
		{sampleTrace + "-extra", false},
		{"cc" + sampleTrace[2:] + ".extra", false},
		{"cc" + sampleTrace[2:] + "-\n", false},
		{"ff" + sampleTrace[2:], false},
		{strings.ToUpper(sampleTrace), false},
		{"00-00000000000000000000000000000000-00f067aa0ba902b7-01", false},
		{"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false},
		{"00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false},
		{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g", false},
		{"0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false},
	} {
		require.Equal(t, c.valid, ValidTraceParent(c.value), "%q", c.value)
	}
}

func TestTraceStates(t *testing.T) {
	require.True(t, ValidTraceState("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"))
	require.True(t, ValidTraceState(strings.Repeat("a", 512)))
	require.False(t, ValidTraceState(""))
	require.False(t, ValidTraceState(strings.Repeat("a", 513)))
	require.False(t, ValidTraceState("a=b\r\nX: y"))
	require.False(t, ValidTraceState("a=ü"))
}

func TestTheTraceOfAJob(t *testing.T) {
	of := func(list ...string) [2]string {
		o := &jobpb.JobOptions{}
		for i := 0; i < len(list); i += 2 {
			o.Headers = append(o.Headers, &jobpb.Header{Name: list[i], Value: list[i+1]})
		}
		parent, state := TraceOf(o)
		return [2]string{parent, state}
	}
	require.Equal(t, [2]string{sampleTrace, "a=b"}, of("a", "b", "traceparent", sampleTrace, "tracestate", "a=b"))
	require.Equal(t, [2]string{sampleTrace, ""}, of("traceparent", sampleTrace, "tracestate", "ü"))
	require.Equal(t, [2]string{}, of("traceparent", "mine", "tracestate", "a=b"))
	require.Equal(t, [2]string{}, of())
	parent, state := TraceOf(nil)
	require.Empty(t, parent+state)
}
