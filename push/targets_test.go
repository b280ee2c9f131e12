package push

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

var (
	answered = outcome{label: "taken", answered: true}
	silence  = outcome{label: "timeout", reason: "push: no answer"}
)

// begins begins a post that must not be put off.
func (s *share) begins(t *testing.T, host string) permit {
	t.Helper()
	to, why := s.begin(host)
	require.Empty(t, why, host)
	return to
}

func (s *share) putsOff(t *testing.T, host string) {
	t.Helper()
	_, why := s.begin(host)
	require.NotEmpty(t, why, host)
}

func TestTargetsThatDoNotAnswerLeaveHalfOfThePlaces(t *testing.T) {
	s := newTargets().shareOf("t", 8)
	s.begins(t, "good").end(answered)
	var permits []permit
	for i := range 8 {
		permits = append(permits, s.begins(t, fmt.Sprint("new", i)))
	}
	s.putsOff(t, "another")
	s.begins(t, "good").end(answered)
	for _, to := range permits {
		to.end(silence)
	}
	for i := range 4 {
		permits[i] = s.begins(t, fmt.Sprint("newer", i))
	}
	s.putsOff(t, "another")
	for _, to := range permits[:4] {
		to.end(answered)
	}
	for i := range 8 {
		s.begins(t, fmt.Sprint("newest", i))
	}
	s.putsOff(t, "another")
}

func TestATargetThatDidNotAnswerGetsOnePostAtATime(t *testing.T) {
	s := newTargets().shareOf("t", 8)
	s.begins(t, "dead").end(silence)
	to := s.begins(t, "dead")
	s.putsOff(t, "dead")
	s.begins(t, "other").end(silence)
	second := s.begins(t, "other")
	s.begins(t, "third").end(silence)
	s.putsOff(t, "third") // two of eight places are enough for such targets
	to.end(answered)
	for range 6 {
		s.begins(t, "dead") // it answers again
	}
	second.end(outcome{}) // it was not posted after all: the leader changed
	s.begins(t, "third")
}

func TestATopicWithOnePlaceHasItForAllTargets(t *testing.T) {
	s := newTargets().shareOf("t", 1)
	s.begins(t, "a").end(silence)
	to := s.begins(t, "b")
	s.putsOff(t, "c")
	to.end(silence)
	s.begins(t, "a").end(answered)
}

func TestTargetsAreRememberedByTopicAndUpToABound(t *testing.T) {
	k := newTargets()
	one, other := k.shareOf("one", 10), k.shareOf("other", 10)
	one.begins(t, "host").end(silence)
	one.begins(t, "host")
	one.putsOff(t, "host")
	other.begins(t, "host").end(answered)
	for i := range 3 * maxKnown {
		other.begins(t, fmt.Sprint(i)).end(answered)
		require.LessOrEqual(t, len(k.recent)+len(k.older), maxKnown)
	}
	one.begins(t, "host") // forgotten
}

func TestUnprovenTargetsOfAllTopicsTogetherAreBounded(t *testing.T) {
	k := newTargets()
	good := k.shareOf("good", 10)
	good.begins(t, "host").end(answered)
	for i := range 2 {
		s := k.shareOf(fmt.Sprint(i), 100)
		for j := range 64 {
			s.begins(t, fmt.Sprint(j))
		}
	}
	k.shareOf("t", 10).putsOff(t, "host")
	good.begins(t, "host")
}

func TestWhatIsPutOffComesBackOneAfterTheOther(t *testing.T) {
	c, now := &consumer{}, time.Unix(1000, 0)
	require.Equal(t, firstWait, c.putOff(now))
	require.Equal(t, firstWait+putOffPace, c.putOff(now))
	require.Equal(t, firstWait+2*putOffPace-time.Millisecond, c.putOff(now.Add(time.Millisecond)))
	for range 100_000 {
		d := c.putOff(now)
		require.True(t, d >= firstWait && d <= longWait, d)
	}
	require.Equal(t, firstWait, c.putOff(now.Add(time.Hour)))
}

// hosts serves all addresses of 127.0.0.0/8 on one port, and returns the port.
func hosts(t *testing.T, h http.HandlerFunc) string {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(h)
	require.NoError(t, server.Listener.Close())
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// pushing returns a rig for targets on all of 127.0.0.0/8 at a port.
func pushing(t *testing.T, port string) *rig {
	return newRigWith(t, "127.0.0.0/8:"+port)
}

// The jobs of a thousand hosts that hang come first. They must neither stop those of a
// host that answers, nor those of another topic.
func TestHostsThatHangStopNoOthers(t *testing.T) {
	const hanging, good = 1_000, 20
	hung := atomic.Int32{}
	port := hosts(t, func(_ http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/hang" {
			hung.Add(1)
			hang(q)
		}
	})
	r := pushing(t, port)
	settings := &jobpb.TopicSettings{Push: &jobpb.PushTarget{Secret: secret, JobUrls: true, Concurrency: 8, TimeoutMs: 500}}
	r.do(&jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "t", Settings: settings}}})
	r.do(&jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "plain", Settings: &jobpb.TopicSettings{
		Push: &jobpb.PushTarget{Secret: secret, Url: "http://127.0.0.1:" + port + "/plain"},
	}}}})
	ok := to("http://127.0.0.1:" + port + "/ok")
	r.add(&jobpb.Add{Id: "first", Options: ok})
	r.becomes("first", jobpb.State_STATE_NONE)
	var adds []*jobpb.Op
	for i := range hanging {
		url := fmt.Sprintf("http://127.1.%d.%d:%s/hang", i/250, 1+i%250, port)
		adds = append(adds, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", TtrMs: 60_000, Options: to(url)}}})
	}
	for i := range good {
		adds = append(adds, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", Id: fmt.Sprint(i), TtrMs: 60_000, Options: ok}}})
		adds = append(adds, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "plain", Id: fmt.Sprint("plain", i), TtrMs: 60_000}}})
	}
	r.do(adds...)
	for i := range good {
		r.becomes(fmt.Sprint("plain", i), jobpb.State_STATE_NONE)
		r.becomes(fmt.Sprint(i), jobpb.State_STATE_NONE)
	}
	require.Less(t, hung.Load(), int32(hanging/2), "the others overtook most of them")
	require.Positive(t, r.counted("put_off"))
	require.Less(t, runtime.NumGoroutine(), 500)
	topic, err := r.queue.Topic(context.Background(), "t", false)
	require.NoError(t, err)
	require.EqualValues(t, hanging, topic.Delayed+topic.Ready+topic.Reserved, "none is lost")
}

func TestAJobThatIsPutOffLosesNoAttempt(t *testing.T) {
	release := make(chan struct{})
	port := hosts(t, func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-release:
		default:
			hang(q)
		}
	})
	r := pushing(t, port)
	settings := &jobpb.TopicSettings{Push: &jobpb.PushTarget{Secret: secret, JobUrls: true, Concurrency: 2, TimeoutMs: 200}}
	r.do(&jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "t", Settings: settings}}})
	for i := range 20 {
		r.add(&jobpb.Add{Id: fmt.Sprint(i), Options: to(fmt.Sprintf("http://127.2.0.%d:%s/", i+1, port))})
	}
	require.Eventually(t, func() bool { return r.counted("put_off") > 0 && r.counted("timeout") >= 2 }, soon, time.Millisecond)
	waits := 0
	for i := range 20 {
		j, err := r.queue.Job(context.Background(), fmt.Sprint(i), false)
		require.NoError(t, err)
		if j.State == jobpb.State_STATE_DELAYED && j.Attempts == 0 {
			require.Contains(t, j.Reason, "push: put off: ")
			require.Zero(t, j.Releases)
			waits++
		}
	}
	require.Positive(t, waits)
	close(release)
	for i := range 20 {
		r.becomes(fmt.Sprint(i), jobpb.State_STATE_NONE)
	}
}
