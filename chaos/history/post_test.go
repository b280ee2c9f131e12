package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pushed is a history of jobs with a target: "a" is refused, not answered, and
// taken; "b" is refused to the end and deleted; "c" is deleted before its time.
func pushed() []Op {
	post := func(id string, attempt int, due, arrival int64, p Post) Op {
		return Op{
			Kind: Deliver, ID: id, Topic: "t", Body: id, Header: id, Attempts: attempt, TTR: 10 * time.Second,
			Due: due, Invoke: arrival, Complete: arrival, Post: &p,
		}
	}
	add := func(id string, seq uint64, delay time.Duration, attempts int) Op {
		return Op{Kind: Add, ID: id, Topic: "t", Body: id, Header: id, Seq: seq, Result: created, Invoke: 10 * ms, Complete: 20 * ms, Delay: delay, TTR: 2 * time.Second, MaxAttempts: attempts}
	}
	get := func(id string, at int64, state string, attempts int, reason string) Op {
		return Op{Kind: Get, ID: id, Topic: "t", State: state, Attempts: attempts, Reason: reason, Invoke: at, Complete: at + ms}
	}
	return []Op{
		{Kind: Limit, Topic: "t", Limits: &Limits{Retain: 3600, Push: true}},

		add("a", 1, time.Second, 0),
		post("a", 1, 1011*ms, 1020*ms, Post{Status: 503, Answered: 1021 * ms, Read: true, Reason: "push: 503 no", RetryAfter: 2 * time.Second}),
		get("a", 1100*ms, "delayed", 1, "push: 503 no"),
		post("a", 2, 3022*ms, 3030*ms, Post{Sent: 3 * sec}),
		post("a", 3, 5022*ms, 5030*ms, Post{Status: 200, Answered: 5031 * ms, Read: true}),
		get("a", 5100*ms, "finished", 3, "push: EOF"),

		add("b", 2, 0, 2),
		post("b", 1, 12*ms, 30*ms, Post{Status: 400, Answered: 31 * ms, Read: true, Reason: "push: 400 no"}),
		post("b", 2, 940*ms, 950*ms, Post{Status: 400, Answered: 951 * ms, Read: true, Reason: "push: 400 no again"}),
		get("b", 1000*ms, "dead", 2, "push: 400 no again"),
		{Kind: Delete, ID: "b", Topic: "t", Invoke: 2 * sec, Complete: 2001 * ms},

		add("c", 3, time.Second, 0),
		{Kind: Delete, ID: "c", Topic: "t", Invoke: 500 * ms, Complete: 510 * ms},
		get("c", 600*ms, "deleted", 0, ""),
	}
}

func TestPostsAreJudged(t *testing.T) {
	for _, c := range []struct {
		name  string
		finds string // the rule that is broken; empty: none is
		spoil func(ops []Op) []Op
	}{
		{"as they should be", "", func(ops []Op) []Op { return ops }},
		{"finished without a post", "I1", func(ops []Op) []Op { return remove(ops, "a", Deliver) }},
		{"finished though no post was taken", "I1", func(ops []Op) []Op {
			find(ops, "a", Deliver, 2).Post.Status = 500
			return ops
		}},
		{"finished after another attempt than the one that was taken", "life", func(ops []Op) []Op {
			find(ops, "a", Get, 1).Attempts = 4
			return ops
		}},
		{"posted before it was due", "I3", func(ops []Op) []Op {
			d := find(ops, "a", Deliver, 0)
			d.Complete, d.Post.Answered = 900*ms, 901*ms
			return ops
		}},
		{"posted again before the time that the target asked for", "I3", func(ops []Op) []Op {
			d := find(ops, "a", Deliver, 1)
			d.Due, d.Complete = 2*sec, 2010*ms
			return ops
		}},
		{"posted again too soon, for all that is known of the answer", "", func(ops []Op) []Op {
			find(ops, "a", Deliver, 0).Post.Read = false
			d := find(ops, "a", Deliver, 1)
			d.Due, d.Complete, d.Post.Sent = 2*sec, 2010*ms, 2*sec
			return ops
		}},
		{"posted again when an answer asked for it that may have been read", "", func(ops []Op) []Op {
			d := find(ops, "a", Deliver, 1)
			d.Post.Status, d.Post.Answered, d.Post.RetryAfter = 503, 3031*ms, time.Second
			d = find(ops, "a", Deliver, 2)
			d.Due, d.Complete, d.Post.Answered = 4100*ms, 4110*ms, 4111*ms
			return ops
		}},
		{"posted again after a 2xx that was read", "life", func(ops []Op) []Op {
			again := *find(ops, "a", Deliver, 2)
			again.Attempts, again.Due, again.Complete = 4, 5100*ms, 7*sec
			find(ops, "a", Get, 1).Attempts = 4
			return append(ops, again)
		}},
		{"posted again after a 2xx whose leader died", "", func(ops []Op) []Op {
			again := *find(ops, "a", Deliver, 2)
			again.Attempts, again.Complete = 4, 15100*ms
			again.Post = &Post{Status: 200, Answered: 15101 * ms}
			g := find(ops, "a", Get, 1)
			g.Attempts, g.Invoke, g.Complete = 4, 15200*ms, 15201*ms
			return append(ops, again)
		}},
		{"posted again after it was seen finished", "life", func(ops []Op) []Op {
			again := *find(ops, "a", Deliver, 2)
			again.Attempts, again.Complete = 4, 15100*ms
			again.Post = &Post{Status: 200, Answered: 15101 * ms}
			return append(ops, again)
		}},
		{"an attempt posted twice", "I4", func(ops []Op) []Op { return append(ops, *find(ops, "a", Deliver, 1)) }},
		{"posted after its delete", "I5", func(ops []Op) []Op {
			d := *find(ops, "a", Deliver, 0)
			d.ID, d.Body, d.Header = "c", "c", "c"
			return append(ops, d)
		}},
		{"posted more often than allowed", "I7", func(ops []Op) []Op {
			find(ops, "b", Get, 0).Invoke, find(ops, "b", Get, 0).Complete = 6*sec, 6*sec
			find(ops, "b", Delete, 0).Invoke, find(ops, "b", Delete, 0).Complete = 7*sec, 7*sec
			d := *find(ops, "b", Deliver, 1)
			d.Attempts, d.Due, d.Complete = 3, 5*sec, 5*sec
			return append(ops, d)
		}},
		{"dead before its attempts were used up", "life", func(ops []Op) []Op {
			find(ops, "b", Get, 0).Attempts = 1
			return ops
		}},
		{"dead without a post", "push", func(ops []Op) []Op {
			g := find(ops, "b", Get, 0)
			g.Reason, g.Attempts = "", 3
			find(ops, "b", Add, 0).MaxAttempts = 3
			return remove(ops, "b", Deliver)
		}},
		{"dead without a post after attempts that may have died with their leaders", "", func(ops []Op) []Op {
			find(ops, "b", Get, 0).Reason = ""
			return remove(ops, "b", Deliver)
		}},
		{"another reason than the answer", "push", func(ops []Op) []Op {
			find(ops, "b", Get, 0).Reason = "push: 400 yes"
			return ops
		}},
		{"wrong signature", "push", func(ops []Op) []Op {
			find(ops, "a", Deliver, 0).Post.Flaw = "another signature"
			return ops
		}},
		{"another body", "I2", func(ops []Op) []Op {
			find(ops, "a", Deliver, 0).Body = "b"
			return ops
		}},
		{"another header", "I2", func(ops []Op) []Op {
			find(ops, "a", Deliver, 0).Header = ""
			return ops
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(c.spoil(pushed()), testOptions)
			if c.finds == "" {
				require.True(t, r.OK(), "%v", r)
				return
			}
			require.NotZero(t, r.Found[c.finds], "%v", r)
		})
	}
}

func TestPostsAreCounted(t *testing.T) {
	ops := pushed()
	r := Check(ops, testOptions)
	require.Equal(t, 5, r.Posts)
	require.Equal(t, 4, r.RefusedPosts)
	require.Zero(t, r.Unknowns(), "what a leader may have made of an answer is no call of a client")
	require.Equal(t, r.ByKind, Check(ops, testOptions).ByKind, "a history can be judged again")
}

func TestAPostIsNoSignOfWrites(t *testing.T) {
	r := NewRecorder()
	r.Record(Op{Kind: Deliver, Invoke: 5, Complete: 7, Post: &Post{}})
	require.Zero(t, r.LastWrite())
}

// A reply to what was sent before a fault may come after it.
func TestTheLastWriteCountsFromItsSending(t *testing.T) {
	r := NewRecorder()
	r.Record(Op{Kind: Add, Invoke: 5, Complete: 9}, Op{Kind: Add, Invoke: 7, Complete: 8, Outcome: Unknown}, Op{Kind: Add, Invoke: 3, Complete: 20})
	require.Equal(t, int64(5), r.LastWrite())
}
