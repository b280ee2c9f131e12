package record

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job/jobpb"
)

// A record that decodes encodes to the same bytes, so no decoder drops or adds anything.
func FuzzRecords(f *testing.F) {
	spec := Spec{ID: "x", Topic: 1, Priority: 2, CreatedMS: 3, DelayMS: 4, DueRequest: 5, DueMS: 6, TtrMS: 7, MaxAttempts: 8, BodyKind: 1}
	f.Add(spec.Append(nil, []byte("body")))
	status := Status{Phase: PhaseReserved, Priority: 1, DueMS: 2, LastDelayMS: 3, Attempts: 4, Generation: 5, untilMS: 6, Reason: "r"}
	f.Add(status.Append(nil, StatusVersion))
	status.Phase, status.History = PhaseFinished, AddEvent("", 0, &jobpb.Event{Kind: jobpb.Event_RELEASED, AtMs: 5, DueMs: 9}, "why")
	f.Add(status.Append(nil, StatusVersion))
	status.MovedTo, status.Rewritten, status.TimedOut = 7, true, true
	f.Add(status.Append(nil, StatusVersion))
	rec := Topic{Number: 1, Added: 2, Finished: 3, EmptySince: 4, Urgent: 5, Pauses: 6, PausedUntil: 7, PauseMS: 8}
	f.Add(rec.Append(nil))
	rec.Bucket = &Bucket{Tokens: 1, At: 2, Since: 3}
	f.Add(rec.Append(nil))
	rec.ExpiryIndexed, rec.Expired = Everything, 2
	rec.Counts[ListExpiring], rec.Heads[ListExpiring] = 1, Place{Instant: 9, Seq: 8}
	rec.Counts[ListDeadline], rec.Heads[ListDeadline] = 2, Place{Instant: 7, Seq: 8}
	f.Add(rec.Append(nil))
	rec.PushURLs = 3
	f.Add(rec.Append(nil))
	rec.ExpiryIndexed, rec.Expired, rec.Counts[ListDeadline] = Place{}, 0, 0
	rec.Counts[ListExpiring], rec.Heads[ListExpiring], rec.Heads[ListDeadline] = 0, Place{}, Place{}
	f.Add(rec.Append(nil))
	s := State{Index: 1, Term: 2, ClockMS: 3, NextSeq: 4, LastTopic: 5}
	f.Add(s.Append(nil))
	s.GatheredDue, s.RecentDue = 7, []DueCount{{TopicMinuteOf(3, 8*MinuteMS), -1}, {TopicMinuteOf(9, 8*MinuteMS), 300}}
	f.Add(s.Append(nil))
	w := DurableMark{Index: 1, Term: 2, ConfigurationIndex: 3, Configuration: []byte("c")}
	f.Add(w.Append(nil))
	reset := ClockReset{Epoch: 1, Ahead: 2, Back: 3, Limit: 4, Next: 5}
	f.Add(reset.Append(nil))
	walk := HeaderWalk{Limit: 9, Next: 3, Names: []WalkedHeader{{"order", true}, {"url", false}}}
	f.Add(walk.Append(nil))
	f.Add(AppendHeaderKey(nil, "order", "5", 7))
	settings, err := EncodeSettings(&jobpb.TopicSettings{Revision: 1, TtrMs: new(int64(2)), Backoff: &jobpb.Backoff{DelaysMs: []int64{3}}})
	require.NoError(f, err)
	f.Add(settings)
	f.Add(ListID{1, ListReady}.AppendKey(nil, Place{Priority: 1, Instant: 2, Seq: 3}))
	f.Fuzz(func(t *testing.T, in []byte) {
		same := func(err error, encode func() []byte) {
			if err != nil {
				return
			}
			if out := encode(); !bytes.Equal(in, out) {
				t.Fatalf("%x decodes to what encodes to %x", in, out)
			}
		}
		spec, body, err := DecodeSpec(in)
		same(err, func() []byte { return spec.Append(nil, body) })
		status, err := decodeStatus(in)
		same(err, func() []byte { return status.Append(nil, in[0]) })
		_, _, _ = DecodeHistory(status.History, spec.CreatedMS)
		_, _, _ = DecodeHistory(string(in), 0)
		rec, err := DecodeTopic(in)
		same(err, func() []byte { return rec.Append(nil) })
		s, err := decodeState(in)
		same(err, func() []byte { return s.Append(nil) })
		w, err := decodeDurableMark(in)
		same(err, func() []byte { return w.Append(nil) })
		reset, err := decodeClockReset(in)
		same(err, func() []byte { return reset.Append(nil) })
		walk, err := decodeHeaderWalk(in)
		same(err, func() []byte { return walk.Append(nil) })
		_, _ = SeqOfHeaderKey(in)
		_, _ = DecodeHeaderCount(in)
		index, configuration, err := decodeConfiguration(in)
		same(err, func() []byte { return AppendConfiguration(nil, index, configuration) })
		// A message has several encodings, so the messages are compared.
		if s, err := DecodeSettings(in); err == nil {
			record, err := EncodeSettings(s)
			require.NoError(t, err)
			again, err := DecodeSettings(record)
			require.NoError(t, err)
			require.True(t, proto.Equal(s, again))
		}
		l, p, err := DecodeIndex(in, nil)
		same(err, func() []byte { return l.AppendKey(nil, p) })
		_, _ = DecodeSeq(in)
		_, _ = SeqOfKey(in)
	})
}
