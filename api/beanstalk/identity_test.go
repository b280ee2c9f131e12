package beanstalk_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"tarry/api/audit"
	"tarry/api/beanstalk"
	"tarry/auth"
	"tarry/job/jobpb"
)

// audited closes the audit log and returns its records.
func (g *guarded) audited() (records []audit.Record) {
	g.Helper()
	g.audit.Close()
	text, err := os.ReadFile(g.auditTo)
	require.NoError(g, err)
	for line := range strings.Lines(string(text)) {
		var r audit.Record
		require.NoError(g, json.Unmarshal([]byte(line), &r))
		records = append(records, r)
	}
	return records
}

// waiting returns a client that waits in a reserve.
func (g *guarded) waiting(id, topic string) *client {
	g.Helper()
	c := g.as(id)
	c.say("watch " + topic)
	c.say("ignore default")
	g.reserves(c)
	return c
}

// reserves sends a reserve, and returns when the node waits for a job for it: before, the connection
// is idle for the node.
func (g *guarded) reserves(c *client) {
	before := g.gauge("tarry_beanstalk_waiting")
	c.send("reserve")
	require.Eventually(g, func() bool { return g.gauge("tarry_beanstalk_waiting") > before }, time.Minute, time.Millisecond)
}

func (g *guarded) gauge(name string) (sum float64) {
	g.Helper()
	for _, registry := range []*prometheus.Registry{g.registry, g.ofTLS} {
		if registry == nil {
			continue
		}
		families, err := registry.Gather()
		require.NoError(g, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == name {
					sum += m.GetGauge().GetValue()
				}
			}
		}
	}
	return sum
}

func TestARevokedTokenEndsItsConnections(t *testing.T) {
	for _, way := range []string{"revoked", "rotated", "its end"} {
		t.Run(way, func(t *testing.T) {
			g := guard(t)
			g.put("worker", 0, "mail sms", "consume")
			g.mode(enforce)
			root := g.as("root")
			root.say("use mail")
			require.Equal(t, "INSERTED 1", root.say("put 0 0 600 1\r\nx"))
			idle, other := g.as("worker"), g.as("root")
			idle.say("watch mail")
			require.Equal(t, "RESERVED 1 1\nx", idle.say("reserve"))
			waits := g.waiting("worker", "sms")
			switch way {
			case "revoked":
				g.revoke("worker")
			case "rotated":
				g.do(&jobpb.Op{Kind: &jobpb.Op_PutToken{PutToken: &jobpb.PutToken{Token: &jobpb.Token{Id: "worker", Hash: secretOf(t, "next").Hash()}}}})
			default:
				g.put("worker", time.Now().Add(50*time.Millisecond).UnixMilli(), "mail sms", "consume")
			}
			require.Equal(t, "INTERNAL_ERROR", waits.reply())
			waits.ends()
			idle.ends()
			require.Equal(t, "USING a", other.say("use a"))
			other.say("watch mail")
			require.Equal(t, "RESERVED 1 1\nx", other.say("reserve"), "what the connection had reserved is ready again")
		})
	}
}

func TestARightThatIsTakenAwayEndsItsReserve(t *testing.T) {
	g := guard(t)
	g.put("worker", 0, "mail sms", "consume read")
	g.mode(enforce)
	root := g.as("root")
	root.say("use mail")
	require.Equal(t, "INSERTED 1", root.say("put 0 0 600 1\r\nx"))
	holds := g.as("worker")
	holds.say("watch mail")
	require.Equal(t, "RESERVED 1 1\nx", holds.say("reserve"))
	waits := g.waiting("worker", "mail")
	g.put("worker", 0, "sms", "consume")
	require.Equal(t, "INTERNAL_ERROR", waits.reply())
	require.Equal(t, "WATCHING 2", waits.say("watch sms"), "it goes on with its other rights")
	for _, command := range []string{"touch 1", "release 1 0 0", "bury 1 0", "delete 1", "reserve-job 1"} {
		require.Equal(t, "NOT_FOUND", holds.say(command), command)
	}
	g.put("worker", 0, "mail", "read")
	require.Equal(t, "INTERNAL_ERROR", holds.say("delete 1"))
	g.put("worker", 0, "mail", "consume")
	require.Equal(t, "TOUCHED", holds.say("touch 1"), "it still has the job")
	require.Equal(t, "DELETED", holds.say("delete 1"))
}

// The job that is reserved with a delete needs the right, too.
func TestReservingAheadNeedsTheRight(t *testing.T) {
	g := guard(t)
	g.put("worker", 0, "mail", "consume")
	g.mode(enforce)
	root := g.as("root")
	for range 2 {
		root.say("use mail")
		root.say("put 0 0 600 1\r\nx")
		root.say("use sms")
		root.say("put 0 0 600 1\r\nx")
	}
	c := g.as("worker")
	c.say("watch mail")
	c.say("ignore default")
	require.Equal(t, "RESERVED 1 1\nx", c.say("reserve"))
	c.send("delete 1\r\nreserve")
	require.Equal(t, "DELETED", c.reply())
	require.Equal(t, "RESERVED 3 1\nx", c.reply())
	c.say("watch sms")
	c.say("ignore mail")
	c.send("delete 3\r\nreserve")
	require.Equal(t, "DELETED", c.reply())
	require.Equal(t, "INTERNAL_ERROR", c.reply())
	require.Contains(t, root.say("stats-tube sms"), "current-jobs-ready: 2\n")
}

// Every connection watches the default tube at first, whether it is for it or not.
func TestTheDefaultTubeIsLeftOutUnlessAskedFor(t *testing.T) {
	g := guard(t)
	g.put("worker", 0, "mail", "consume")
	g.mode(enforce)
	root := g.as("root")
	require.Equal(t, "INSERTED 1", root.say("put 0 0 60 1\r\nx"))
	root.say("use mail")
	require.Equal(t, "INSERTED 2", root.say("put 9 0 60 1\r\nx"))
	c := g.as("worker")
	require.Equal(t, "INTERNAL_ERROR", c.say("reserve-with-timeout 0"))
	require.Equal(t, "WATCHING 2", c.say("watch mail"))
	require.Equal(t, "RESERVED 2 1\nx", c.say("reserve-with-timeout 0"))
	require.Equal(t, "TIMED_OUT", c.say("reserve-with-timeout 0"))
	require.Equal(t, "WATCHING 2", c.say("watch default"))
	require.Equal(t, "INTERNAL_ERROR", c.say("reserve-with-timeout 0"))
	g.put("worker", 0, "mail default", "consume")
	require.Equal(t, "RESERVED 1 1\nx", c.say("reserve-with-timeout 0"))
}

func TestAClientThatMayDoNothingIsSentAway(t *testing.T) {
	t.Run("after three tries", func(t *testing.T) {
		g := guard(t)
		g.mode(enforce)
		c := g.as("")
		c.send("use a\r\nput 0 0 1 1\r\nx\r\nput 0 0 1 2\r\nabc\r\nstats\r\nstats")
		for range 3 {
			require.Equal(t, "INTERNAL_ERROR", c.reply())
		}
		c.ends()
		require.EqualValues(t, 3, g.denied())
		late := g.as("")
		require.Equal(t, "INTERNAL_ERROR", late.say("stats"))
		require.Equal(t, "INTERNAL_ERROR", late.say("reserve"))
		require.Equal(t, "AUTHORIZED", late.say("auth "+secretOf(t, "root").Text()))
		require.Equal(t, "USING a", late.say("use a"))
	})
	t.Run("after some time", func(t *testing.T) {
		g := guard(t, func(o *beanstalk.Options) { o.StrangerTime = time.Millisecond })
		stays := g.as("")
		require.Equal(t, "USING a", stays.say("use a"))
		g.mode(enforce, ruleOf(t, "public", "add"))
		public := g.as("")
		require.Equal(t, "USING public", public.say("use public"))
		g.mode(enforce)
		g.as("").ends()
		g.mode(authOff)
		require.Equal(t, "USING a", stays.say("use a"))
	})
	t.Run("not if it may do something", func(t *testing.T) {
		g := guard(t)
		g.mode(enforce, ruleOf(t, "public", "add"))
		c := g.as("")
		for range 5 {
			require.Equal(t, "INTERNAL_ERROR", c.say("stats"))
		}
		c.say("use public")
		require.Equal(t, "INSERTED 1", c.say("put 0 0 1 1\r\nx"))
	})
}

// A text that is not accepted ends the connection where something is refused, and is nowhere to
// be read afterwards.
func TestATokenThatIsNotAccepted(t *testing.T) {
	g := guard(t)
	good := secretOf(t, "root").Text()
	never := secretOf(t, "never-made").Text()
	bad := []string{never, "secret", good[:len(good)-1] + "x", good + " ", " " + good, ""}
	for _, mode := range []jobpb.AuthMode{authOff, report, enforce} {
		g.mode(mode)
		for _, text := range bad {
			c, before := g.as(""), g.denied()
			c.send("auth " + text + "\r\nlist-tube-used")
			if mode == enforce {
				require.Equal(t, "UNAUTHORIZED", c.reply(), text)
				c.ends()
			} else {
				require.Equal(t, "AUTHORIZED", c.reply())
				require.Equal(t, "USING default", c.reply())
			}
			require.Equal(t, mode != authOff, g.denied() > before)
		}
	}
	c := g.as("")
	require.Equal(t, "UNKNOWN_COMMAND", c.say("auth"))
	require.Equal(t, "BAD_FORMAT", c.say("auth "+strings.Repeat("x", 300)))
	require.Equal(t, 1, strings.Count(g.log.String(), "level=WARN"), "a client must not fill the log: %s", g.log)
	require.Contains(t, g.log.String(), "a token that is not accepted")
	g.hidesTokens()
	require.NotContains(t, g.log.String(), never[len(never)-20:])
	denials, claimed := 0, 0
	for _, r := range g.audited() {
		require.Equal(t, "auth", r.Call)
		require.Equal(t, "beanstalkd", r.Via)
		require.Contains(t, r.Remote, "127.0.0.1:")
		require.Empty(t, r.Principal)
		if r.Claimed == "never-made" {
			claimed++
		} else {
			require.Empty(t, r.Claimed)
		}
		denials += max(1, r.Times)
	}
	require.Equal(t, 2*len(bad), denials)
	require.Equal(t, 2, claimed)
}

// A connection that was made while nothing was refused has its token, whenever that is made.
func TestATokenCountsFromWhenItIsMade(t *testing.T) {
	g := guard(t)
	early, never := g.as("later"), g.as("never")
	g.put("later", 0, "mail", "add")
	g.mode(report)
	require.Equal(t, "USING mail", early.say("use mail"))
	before := g.denied()
	require.Equal(t, "INSERTED 1", early.say("put 0 0 1 1\r\nx"))
	require.Equal(t, before, g.denied())
	require.Equal(t, "INSERTED 2", never.say("put 0 0 1 1\r\nx"))
	require.Greater(t, g.denied(), before)
	g.mode(enforce)
	never.ends()
	require.Equal(t, "INSERTED 3", early.say("put 0 0 1 1\r\nx"))
	require.Equal(t, "AUTHORIZED", early.say("auth "+secretOf(t, "root").Text()))
	require.Contains(t, early.say("stats"), "current-jobs-ready: 3\n")
	g.revoke("later")
	require.Equal(t, "USING a", early.say("use a"), "it has another token now")
}

func TestCommandsAreAudited(t *testing.T) {
	g := guard(t)
	g.put("worker", 0, "mail", "add consume manage")
	run := func(c *client) {
		c.say("use mail")
		c.say("watch mail")
		c.say("ignore default")
		id, _ := strings.CutPrefix(c.say("put 0 0 60 1\r\nx"), "INSERTED ")
		c.say("reserve")
		c.say("delete " + id)
		c.say("delete " + id)
		c.say("kick 1")
		c.say("pause-tube sms 1")
	}
	run(g.as(""))
	g.mode(report)
	run(g.as("worker"))
	g.mode(enforce)
	run(g.as("worker"))
	type line struct{ principal, call, resource, verb, outcome, code, reason string }
	var have []line
	for _, r := range g.audited() {
		have = append(have, line{r.Principal, r.Call, r.Resource, r.Verb, r.Outcome, r.Code, r.Reason})
	}
	require.Equal(t, []line{
		{"", "delete", "job 1", "manage", "failed", "not_found", ""},
		{"", "kick", "topic mail", "manage", "done", "", ""},
		{"", "pause-tube", "topic sms", "manage", "failed", "not_found", ""},
		{"worker", "delete", "job 2", "manage", "failed", "not_found", ""},
		{"worker", "kick", "topic mail", "manage", "done", "", ""},
		{"worker", "pause-tube", "topic sms", "manage", "failed", "not_found", ""},
		{"worker", "delete", "job 3", "manage", "failed", "not_found", ""},
		{"worker", "kick", "topic mail", "manage", "done", "", ""},
		{"worker", "pause-tube", "topic sms", "manage", "denied", "", "not_granted"},
	}, have)
}

// The clients of a listener with a token send none.
func TestAListenerHasAToken(t *testing.T) {
	var text atomic.Value
	text.Store("shop")
	g := guard(t)
	bound := serveBound(t, g.options, func() (auth.Secret, error) {
		if text.Load() == "" {
			return auth.Secret{}, errors.New("there is no such file")
		}
		return secretOf(t, text.Load().(string)), nil
	})
	g.put("shop", 0, "mail", "add")
	g.mode(enforce)
	c := dial(t, bound)
	c.say("use mail")
	require.Equal(t, "INSERTED 1", c.say("put 0 0 1 1\r\nx"))
	require.Equal(t, "INTERNAL_ERROR", c.say("kick 1"))
	other := dial(t, bound)
	require.Equal(t, "AUTHORIZED", other.say("auth "+secretOf(t, "root").Text()))
	require.Equal(t, "USING mail", other.say("use mail"))
	g.revoke("shop")
	c.ends()
	require.Equal(t, "KICKED 0", other.say("kick 1"), "it has sent a token of its own")
	for _, not := range []string{"shop", ""} {
		text.Store(not)
		c = dial(t, bound)
		require.Equal(t, "INTERNAL_ERROR", c.say("use mail"))
		require.Equal(t, "AUTHORIZED", c.say("auth "+secretOf(t, "root").Text()))
		require.Equal(t, "USING mail", c.say("use mail"))
	}
	require.Contains(t, g.log.String(), "the token of a listener")
}
