package beanstalk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// limit gives a token limits.
func (g *guarded) limit(id string, of *jobpb.TokenLimits) {
	g.Helper()
	g.do(&jobpb.Op{Kind: &jobpb.Op_PutToken{PutToken: &jobpb.PutToken{Token: &jobpb.Token{
		Id: id, Hash: secretOf(g, id).Hash(), Rules: []*jobpb.Rule{ruleOf(g, "*", "add consume read")}, Limits: of,
	}}}})
}

// The rate is of one operation in 1000 s, so that nobody has another one by waiting.
func TestACommandAboveTheRateOfItsTokenIsRefused(t *testing.T) {
	g := guard(t)
	g.limit("shop", nil)
	g.mode(enforce)
	c := g.as("shop")
	for range 3 {
		require.Regexp(t, `^INSERTED`, c.say("put 0 0 60 1\r\nx"))
	}
	require.Equal(t, "RESERVED 1 1\nx", c.say("reserve"))
	require.Equal(t, "RESERVED 2 1\nx", c.say("reserve"))

	g.limit("shop", &jobpb.TokenLimits{RateMilli: 1})
	c.send("put 0 0 60 1\r\na\r\nput 0 0 60 1\r\nb\r\nreserve-with-timeout 5")
	require.Equal(t, "INSERTED 4", c.reply())
	require.Equal(t, "OUT_OF_MEMORY", c.reply(), "each put of a pipeline counts")
	require.Equal(t, "OUT_OF_MEMORY", c.reply())
	require.Equal(t, "OUT_OF_MEMORY", c.say("stats-job 3"))
	require.Equal(t, "OUT_OF_MEMORY", c.say("use other"))
	require.Equal(t, "OUT_OF_MEMORY", c.say("delete 3"), "it has not reserved that one")

	// What it holds it can end.
	require.Equal(t, "TOUCHED", c.say("touch 1"))
	require.Equal(t, "DELETED", c.say("delete 1"))
	require.Equal(t, "RELEASED", c.say("release 2 0 0"))
	require.Equal(t, "OUT_OF_MEMORY", c.say("reserve"))
	g.limit("shop", nil)
	require.Equal(t, "RESERVED 2 1\nx", c.say("reserve"))
}

// It could touch without end. What it holds it can end all the same.
func TestTouchesAboveTheRateOfATokenHaveABound(t *testing.T) {
	g := guard(t)
	g.limit("shop", &jobpb.TokenLimits{RateMilli: 1000_000})
	g.mode(enforce)
	c := g.as("shop")
	for i := range 2 {
		require.Regexp(t, `^INSERTED`, c.say("put 0 0 3600 1\r\nx"))
		require.Equal(t, fmt.Sprintf("RESERVED %d 1\nx", i+1), c.say("reserve"))
	}
	g.limit("shop", &jobpb.TokenLimits{RateMilli: 1})
	for i := range 100 {
		want := "TOUCHED"
		if i >= 65 {
			want = "OUT_OF_MEMORY"
		}
		require.Equal(t, want, c.say("touch 1"), i)
	}
	// Another job can be prolonged all the same, once in a quarter of its TTR.
	require.Equal(t, "TOUCHED", c.say("touch 2"))
	require.Equal(t, "OUT_OF_MEMORY", c.say("touch 2"))
	require.Equal(t, "DELETED", c.say("delete 1"))
}

func TestTheBytesOfATokenAreThoseOfPutsAndOfJobs(t *testing.T) {
	g := guard(t)
	g.limit("shop", &jobpb.TokenLimits{Bytes: 1})
	g.mode(enforce)
	c := g.as("shop")
	body := strings.Repeat("x", 10_000)
	put := fmt.Sprintf("put 0 0 60 %d\r\n%s", len(body), body)
	require.Regexp(t, `^INSERTED`, c.say(put))
	require.Equal(t, "OUT_OF_MEMORY", c.say(put))
	require.Equal(t, "OUT_OF_MEMORY", c.say("reserve"))
	require.Equal(t, "USING other", c.say("use other"))
}

func TestAConnectionThatIsTooManyForItsTokenEnds(t *testing.T) {
	g := guard(t)
	g.limit("shop", &jobpb.TokenLimits{Connections: 1})
	g.mode(enforce)
	one := g.as("shop")
	require.Equal(t, "AUTHORIZED", one.say("auth "+secretOf(t, "shop").Text()), "it has its place")
	two := g.dial()
	require.Equal(t, "OUT_OF_MEMORY", two.say("auth "+secretOf(t, "shop").Text()))
	two.ends()
	one.conn.Close()
	require.Eventually(t, func() bool {
		c := g.dial()
		defer c.conn.Close()
		return c.say("auth "+secretOf(t, "shop").Text()) == "AUTHORIZED"
	}, patience, 5*time.Millisecond)
}

func TestAReserveThatWaitsIsOneOfTheWaitersOfItsToken(t *testing.T) {
	g := guard(t)
	g.limit("shop", &jobpb.TokenLimits{Waiters: 1})
	g.mode(enforce)
	one, two := g.as("shop"), g.as("shop")
	one.send("reserve-with-timeout 3600")
	require.Eventually(t, func() bool {
		return strings.Contains(two.say("stats-tube default"), "current-waiting: 1")
	}, patience, 5*time.Millisecond)
	require.Equal(t, "OUT_OF_MEMORY", two.say("reserve-with-timeout 3600"))
	require.Equal(t, "TIMED_OUT", two.say("reserve-with-timeout 0"), "it does not wait")
	require.Regexp(t, `^INSERTED`, two.say("put 0 0 60 1\r\nx"))
	require.Equal(t, "RESERVED 1 1\nx", one.reply())
}

// Else one line of a client would use up what all of them may send, for as long as the client likes.
func TestABodyThatIsOnlyAnnouncedIsNotCounted(t *testing.T) {
	g := guard(t)
	g.limit("shop", &jobpb.TokenLimits{Bytes: 1})
	g.mode(enforce)
	g.as("shop").send("put 0 0 60 4294967295")
	c := g.as("shop")
	require.Equal(t, "BAD_FORMAT", c.say("put 0 0 60 65535 x"))
	c.send("put 0 0 60 65535")
	require.NoError(t, c.conn.Close())
	require.Eventually(t, func() bool {
		return strings.HasPrefix(g.as("shop").say("put 0 0 60 1\r\nx"), "INSERTED")
	}, time.Minute, 10*time.Millisecond)
}

func TestACommandThatIsMalformedCounts(t *testing.T) {
	for line, reply := range map[string]string{"nonsense": "UNKNOWN_COMMAND", "put 1 2": "BAD_FORMAT"} {
		g := guard(t)
		g.limit("shop", &jobpb.TokenLimits{RateMilli: 1})
		g.mode(enforce)
		c := g.as("shop")
		for range 100 {
			require.Equal(t, reply, c.say(line))
		}
		require.Equal(t, "OUT_OF_MEMORY", c.say("list-tube-used"))
	}
}
