package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// streamer consumes one node's stream and finishes through the others.
type streamer struct {
	t      *testing.T
	from   *client.Client
	finish *client.Client
	credit int

	mu   sync.Mutex
	held map[string]time.Time // by token: when the reservation ends
	seen map[string]bool
	most int
}

// run consumes until ctx ends, as many jobs at once as the credit says.
func (s *streamer) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	for ctx.Err() == nil {
		for j, err := range s.from.Stream(ctx, client.StreamOptions{Topics: []string{"work"}, Credit: s.credit, TTR: 10 * time.Second, Heartbeat: time.Second}) {
			if err != nil {
				break // the node is down; try again until it is back
			}
			s.take(&j)
			work.Go(func() {
				s.leave(&j)
				// Stale or not there: another attempt has it, or had it.
				_ = s.finish.Finish(ctx, j.Ref())
			})
		}
	}
}

func (s *streamer) take(j *client.Reserved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[j.ID] = true
	s.held[j.Token] = j.ReservedUntil
	last := 0
	for _, until := range s.held {
		if until.After(time.Now()) {
			last++
		}
	}
	s.most = max(s.most, last)
}

// leave says that a job is no longer held, before it is finished.
func (s *streamer) leave(j *client.Reserved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, j.Token)
}

func TestStreamsOutlastTheLeader(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	nodes := c.Nodes()
	const jobs, credit = 5000, 20
	all := connectTo(t, patience, c.addrs()...)
	var streamers []*streamer
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	for i := range nodes {
		s := &streamer{
			t: t, from: connectTo(t, 0, nodes[i].HTTP), finish: connectTo(t, patience, nodes[(i+1)%3].HTTP, nodes[(i+2)%3].HTTP),
			credit: credit, held: map[string]time.Time{}, seen: map[string]bool{},
		}
		streamers = append(streamers, s)
		work.Go(func() { s.run(ctx) })
	}
	topic := func() client.Topic {
		topic, err := all.Topics().Get(ctx, "work")
		require.NoError(t, err)
		return topic
	}
	add := func(from, to int) {
		var batch []client.NewJob
		for i := from; i < to; i++ {
			batch = append(batch, client.NewJob{ID: fmt.Sprint(i), Topic: "work", Body: client.Text("x")})
		}
		results, err := all.AddBatch(ctx, batch)
		require.NoError(t, err)
		for _, r := range results {
			require.NoError(t, r.Err)
		}
	}
	for i := 0; i < jobs/2; i += 500 {
		add(i, i+500)
		require.LessOrEqual(t, topic().Reserved, uint64(3*credit))
	}
	leader := c.leader()
	require.NoError(t, leader.Kill())
	for i := jobs / 2; i < jobs; i += 500 {
		add(i, i+500)
	}
	require.NoError(t, leader.Start())
	c.until(func() error {
		if topic := topic(); topic.Finished != jobs {
			return fmt.Errorf("%+v", topic)
		}
		return nil
	})
	cancel()
	work.Wait()
	seen := map[string]bool{}
	for i, s := range streamers {
		require.NotEmpty(t, s.seen, "stream %d", i)
		require.LessOrEqual(t, s.most, credit, "stream %d", i)
		for id := range s.seen {
			seen[id] = true
		}
		t.Logf("stream %d: %d jobs, at most %d at once", i, len(s.seen), s.most)
	}
	require.Len(t, seen, jobs)
	c.waitReady(nodes...)
	c.requireEqualDigests(nodes[0], 3)
}

func connectTo(t *testing.T, patience time.Duration, addrs ...string) *client.Client {
	t.Helper()
	c, err := client.New(addrs, client.WithPatience(patience))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// TestIdleStreamsWriteNothing: a stream with nothing to do leaves the log alone,
// on whatever node it is.
func TestIdleStreamsWriteNothing(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	post(t, c.leader().HTTP, "/v1/jobs", object{"topic": "other", "body": 1})
	var streams []*bufio.Scanner
	for _, n := range c.Nodes() {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.HTTP+"/v1/stream?topics=a,b&credit=5&heartbeat=1", nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(q)
		require.NoError(t, err)
		defer answer.Body.Close()
		streams = append(streams, bufio.NewScanner(answer.Body))
	}
	beats := func(n int) {
		for _, s := range streams {
			for got := 0; got < n; {
				require.True(t, s.Scan(), "%v", s.Err())
				var e struct{ Event string }
				require.NoError(t, json.NewDecoder(strings.NewReader(s.Text())).Decode(&e))
				if e.Event == "heartbeat" {
					got++
				}
			}
		}
	}
	applied := func() map[string]uint64 {
		at := map[string]uint64{}
		members, err := c.Members(t.Context(), c.leader())
		require.NoError(t, err)
		for _, m := range members {
			at[m.ID] = m.AppliedIndex
		}
		return at
	}
	beats(2) // what belongs to the start is over
	before := applied()
	beats(3)
	require.Equal(t, before, applied())
}
