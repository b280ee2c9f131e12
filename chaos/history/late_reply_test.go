package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The node that client 7 waits at hands out the job, and stands still before its reply leaves. Its
// reservation expires, client 8 gets the job and ends it; then the reply arrives.
func TestAReplyThatANodeSentLateIsOfAnEarlierReservation(t *testing.T) {
	ops := func(end Op) []Op {
		end.ID, end.Seq, end.Lease, end.Invoke, end.Complete = "a", 1, 8, 3*sec, 3*sec+10
		return []Op{
			{Kind: Add, ID: "a", Topic: "t", Seq: 1, TTR: time.Second, Invoke: 0, Complete: 10},
			{Kind: Deliver, ID: "a", Seq: 1, Lease: 7, Invoke: 20, Complete: 3500 * ms, ReservedUntil: 20 + sec, TTR: time.Second},
			{Kind: Deliver, ID: "a", Seq: 1, Lease: 8, Invoke: 2800 * ms, Complete: 3*sec - 10, ReservedUntil: 3800 * ms, TTR: time.Second},
			end,
			{Kind: Deliver, ID: "a", Seq: 1, Lease: 9, Invoke: 9 * sec, Complete: 9*sec + 10, ReservedUntil: 10 * sec, TTR: time.Second},
			{Kind: Delete, ID: "a", Seq: 1, Lease: 9, Invoke: 9*sec + 20, Complete: 9*sec + 30},
		}
	}
	deleted := ops(Op{Kind: Delete})[:4]
	delayed := ops(Op{Kind: Release, Delay: 5 * time.Second})
	for name, ops := range map[string][]Op{"deleted": deleted, "released with a delay": delayed} {
		t.Run(name, func(t *testing.T) {
			stood := Options{Stalls: []Window{{From: 30, To: 3400 * ms}}}
			r := Check(ops, stood)
			require.True(t, r.OK(), "%v", r)
			require.False(t, Check(ops, Options{}).OK(), "no node stood still")
			elsewhen := Options{Stalls: []Window{{From: 5 * sec, To: 6 * sec}}}
			require.False(t, Check(ops, elsewhen).OK(), "none did at that time")
		})
	}
	early := ops(Op{Kind: Delete})[:4]
	early[1].Invoke, early[1].ReservedUntil = 2600*ms, 3600*ms // no reservation that began then expired
	require.False(t, Check(early, Options{Stalls: []Window{{From: 30, To: 4 * sec}}}).OK())
}
