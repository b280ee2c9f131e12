package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func TestAnExplanationIsWrittenWithInstantsOfTheReader(t *testing.T) {
	e := &jobpb.Explanation{LateMs: 3000, DueMs: 90_000, Causes: []*jobpb.Cause{
		{Kind: jobpb.Cause_PAUSED, UntilMs: 120_000, LateMs: 3000},
		{Kind: jobpb.Cause_EXPIRES, UntilMs: 60_000, Then: "dead"},
	}}
	for _, c := range e.Causes {
		c.Text = CauseText(e, c, InstantAfter)
	}
	require.Equal(t, "3.0 s late: the topic is paused until 1970-01-01T00:02:00Z; expires at 1970-01-01T00:01:00Z, before it is due, and is then dead", ExplanationText(e, InstantAfter))
	soon := func(word string, ms int64) string { return "soon" }
	require.Equal(t, "3.0 s late: the topic is paused soon; expires soon, before it is due, and is then dead", ExplanationText(e, soon))
	e.Causes[1].Text = "expires by another release's words"
	require.Equal(t, "3.0 s late: the topic is paused soon; expires by another release's words", ExplanationText(e, soon))
}
