package workload

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/chaos/history"
)

// tubeServer sends what reply returns for each line of a beanstalkd client. "hang up"
// closes the connection. Bodies of puts are lines too.
func tubeServer(t *testing.T, reply func(line string) string) Node {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serveLines(conn, reply)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return Node{Beanstalk: l.Addr().String()}
}

func serveLines(conn net.Conn, reply func(string) string) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		switch answer := reply(lines.Text()); answer {
		case "":
		case "hang up":
			return
		default:
			fmt.Fprintf(conn, "%s\r\n", answer)
		}
	}
}

func tubeConfig(n Node) Config {
	return Config{
		Nodes: func() []Node { return []Node{n} }, Recorder: history.NewRecorder(), Tubes: []string{"tube"},
		Name: "r", Seed: 1, Think: time.Millisecond,
	}
}

func TestOutcomeOfAPut(t *testing.T) {
	made := 0
	c := tubeConfig(tubeServer(t, func(line string) string {
		if !strings.HasPrefix(line, "put ") {
			return "" // a body
		}
		made++
		return map[int]string{1: "INSERTED 7", 2: "DRAINING", 3: "OUT_OF_MEMORY", 4: "INTERNAL_ERROR", 5: "hang up"}[made]
	}))
	p := newTubeProducer(0, c).(*tubeProducer)
	defer p.hangUp()
	require.True(t, p.connect())
	p.puts("tube", 6)
	var outcomes []history.Outcome
	for _, op := range c.Recorder.Ops() {
		require.Equal(t, history.Add, op.Kind)
		require.True(t, strings.HasPrefix(op.Body, op.ID+" "), "the body names the job")
		outcomes = append(outcomes, op.Outcome)
	}
	require.Equal(t, []history.Outcome{history.OK, history.Fail, history.Fail, history.Unknown, history.Unknown, history.Unknown}, outcomes)
	require.Equal(t, uint64(7), c.Recorder.Ops()[0].Seq)
}

func TestConsumerDisconnectsWithReservedJobs(t *testing.T) {
	c := tubeConfig(tubeServer(t, func(line string) string {
		switch word, _, _ := strings.Cut(line, " "); word {
		case "reserve-with-timeout":
			return "RESERVED 12 4\r\njob "
		case "delete":
			return "hang up"
		}
		return "WATCHING 1"
	}))
	consumer := newTubeConsumer(3, c).(*tubeConsumer)
	require.True(t, consumer.connect("watch tube"))
	job, ok := consumer.reserve(context.Background())
	require.True(t, ok)
	consumer.endWith(job, history.Delete, "delete %d", "DELETED")
	consumer.leave()
	ops := c.Recorder.Ops()
	require.Len(t, ops, 3)
	require.Equal(t, "job", ops[0].ID)
	require.Equal(t, uint64(12), ops[0].Seq)
	require.Equal(t, ops[0].Invoke+jobTTR.Microseconds(), ops[0].ReservedUntil)
	require.Equal(t, history.Unknown, ops[1].Outcome, "the delete may have been done")
	require.Equal(t, history.Release, ops[2].Kind)
	require.Equal(t, history.Unknown, ops[2].Outcome, "the job may have been given back")
	for _, op := range ops {
		require.Equal(t, ops[0].Lease, op.Lease)
	}
	require.Less(t, ops[2].Invoke, ops[1].Complete, "from the last reply on")
}
