package bench

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tubeServer is as much of a beanstalkd as the load generator sees. It has one
// queue of bodies; delays are whole seconds, which tests do without.
type tubeServer struct {
	mu            sync.Mutex
	bodies        []string
	puts, deletes int
	deepest       int      // most puts that arrived before the first was answered
	lines         []string // of the first connection's greeting
	refuse        string   // the answer to every put
	conns         []net.Conn
	listener      net.Listener
	serving       sync.WaitGroup
	connections   int
}

func serveTubes(t *testing.T, s *tubeServer) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.listener = l
	s.serving.Go(s.accept)
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for _, nc := range s.conns {
			nc.Close()
		}
		s.mu.Unlock()
		s.serving.Wait()
	})
	return l.Addr().String()
}

func (s *tubeServer) accept() {
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, nc)
		s.connections++
		s.mu.Unlock()
		s.serving.Go(func() { s.serve(nc) })
	}
}

func (s *tubeServer) serve(nc net.Conn) {
	defer nc.Close()
	r, w := bufio.NewReaderSize(nc, 1<<20), bufio.NewWriter(nc)
	unanswered := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if strings.HasPrefix(line, "put ") {
			unanswered++
		}
		s.command(strings.TrimSuffix(line, "\r\n"), r, w)
		s.mu.Lock()
		s.deepest = max(s.deepest, unanswered)
		s.mu.Unlock()
		if r.Buffered() == 0 {
			unanswered = 0
			if w.Flush() != nil {
				return
			}
		}
	}
}

func (s *tubeServer) command(line string, r *bufio.Reader, w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb, arguments, _ := strings.Cut(line, " ")
	switch verb {
	case "use":
		s.lines = append(s.lines, line)
		fmt.Fprintf(w, "USING %s\r\n", arguments)
	case "watch", "ignore":
		s.lines = append(s.lines, line)
		io.WriteString(w, "WATCHING 1\r\n")
	case "put":
		s.put(arguments, r, w)
	case "reserve-with-timeout":
		if len(s.bodies) == 0 {
			io.WriteString(w, "TIMED_OUT\r\n")
			return
		}
		fmt.Fprintf(w, "RESERVED %d %d\r\n%s\r\n", len(s.bodies), len(s.bodies[0]), s.bodies[0])
		s.bodies = s.bodies[1:]
	case "delete":
		s.deletes++
		io.WriteString(w, "DELETED\r\n")
	default:
		io.WriteString(w, "UNKNOWN_COMMAND\r\n")
	}
}

func (s *tubeServer) put(arguments string, r *bufio.Reader, w io.Writer) {
	var priority, delay, ttr, size int
	fmt.Sscan(arguments, &priority, &delay, &ttr, &size)
	body := make([]byte, size+2)
	if _, err := io.ReadFull(r, body); err != nil || string(body[size:]) != "\r\n" {
		io.WriteString(w, "EXPECTED_CRLF\r\n")
		return
	}
	if s.refuse != "" {
		io.WriteString(w, s.refuse+"\r\n")
		return
	}
	s.puts++
	s.bodies = append(s.bodies, string(body[:size]))
	fmt.Fprintf(w, "INSERTED %d\r\n", s.puts)
}

func shortTubes(t *testing.T, sc Scenario, s *tubeServer) Config {
	c := Defaults(sc, Beanstalkd)
	c.Addrs = []string{serveTubes(t, s)}
	c.Connections, c.Rate, c.Delay = 2, 200, 0
	c.Warmup, c.Duration = 20*time.Millisecond, 200*time.Millisecond
	c.Logger = slog.New(slog.DiscardHandler)
	return c
}

func TestTubeScenariosCountWhatTheServerDid(t *testing.T) {
	for name, c := range map[string]struct {
		scenario Scenario
		pipeline int
	}{
		"put":       {Add, 1},
		"pipelined": {Add, 32},
		"cycle":     {Cycle, 1},
		"delayed":   {Delayed, 1},
		"worker":    {Worker, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &tubeServer{}
			config := shortTubes(t, c.scenario, s)
			config.Pipeline = c.pipeline
			res, err := Run(t.Context(), config)
			require.NoError(t, err)
			s.mu.Lock()
			defer s.mu.Unlock()
			require.Positive(t, res.Jobs)
			require.Zero(t, res.Failures)
			require.LessOrEqual(t, res.Jobs, int64(s.puts))
			require.LessOrEqual(t, s.deepest, c.pipeline)
			if c.scenario == Add {
				require.Zero(t, res.Jobs%int64(c.pipeline))
				require.Len(t, s.bodies[0], config.Size)
				require.Zero(t, s.deletes)
			} else {
				require.LessOrEqual(t, res.Jobs, int64(s.deletes))
			}
			if config.paced() {
				require.NotNil(t, res.Lateness)
				require.Less(t, res.Lateness.Max, 10_000.0, "the due instant in the body is read as it was written")
			} else {
				require.Positive(t, res.Latency.P50)
			}
		})
	}
}

func TestAPipelineIsSentBeforeAnswersAreRead(t *testing.T) {
	s := &tubeServer{}
	config := shortTubes(t, Add, s)
	config.Pipeline, config.Connections = 32, 1
	_, err := Run(t.Context(), config)
	require.NoError(t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Greater(t, s.deepest, 1)
}

func TestConnectionsUseTheirTubesOnly(t *testing.T) {
	s := &tubeServer{}
	config := shortTubes(t, Cycle, s)
	config.Connections = 1
	_, err := Run(t.Context(), config)
	require.NoError(t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, []string{"use bench-cycle-0", "watch bench-cycle-0", "ignore default"}, s.lines)
}

func TestARefusedPutIsAFailureThatSaysWhy(t *testing.T) {
	s := &tubeServer{refuse: "INTERNAL_ERROR"}
	_, err := Run(t.Context(), shortTubes(t, Add, s))
	require.ErrorContains(t, err, `the answer is "INTERNAL_ERROR", not INSERTED`)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Greater(t, s.connections, 2, "each failure ends its connection, so that no late answer is mistaken")
}

func TestJobsOfAnEarlierRunDoNotCount(t *testing.T) {
	old := fmt.Sprintf("%d%s", time.Now().Add(-time.Hour).UnixNano(), strings.Repeat("x", 181))
	s := &tubeServer{bodies: []string{old, old, old}}
	config := shortTubes(t, Delayed, s)
	config.Warmup = 0
	res, err := Run(t.Context(), config)
	require.NoError(t, err)
	require.Less(t, res.Lateness.Max, 10_000.0)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.LessOrEqual(t, res.Jobs, int64(s.deletes)-3)
}

func TestValidateNamesWhatAProtocolLacks(t *testing.T) {
	for field, spoil := range map[string]func(*Config){
		"scenario": func(c *Config) { c.Scenario = AddBatch },
		"pipeline": func(c *Config) { c.Scenario, c.Pipeline = Cycle, 2 },
		"ids":      func(c *Config) { c.IDs = true },
		"delay":    func(c *Config) { c.Scenario, c.Delay = Delayed, 1500*time.Millisecond },
		"size":     func(c *Config) { c.Scenario, c.Size = Delayed, 18 },
	} {
		c := Defaults(Add, Beanstalkd)
		c.Logger = slog.New(slog.DiscardHandler)
		require.NoError(t, c.Validate())
		spoil(&c)
		require.ErrorContains(t, c.Validate(), field)
	}
	c := Defaults(Add, HTTP)
	c.Logger, c.Pipeline = slog.New(slog.DiscardHandler), 2
	require.ErrorContains(t, c.Validate(), "pipeline")
}

func TestRowsOfTheProtocolCanBeRepeated(t *testing.T) {
	require.Len(t, BeanstalkdRows(false), 5)
	rows := BeanstalkdRows(true)
	require.Len(t, rows, 15)
	for _, row := range rows {
		row.Config.Logger = slog.New(slog.DiscardHandler)
		require.NoError(t, row.Config.Validate())
	}
	require.Equal(t, "tarry bench --start 3 --scenario add --protocol beanstalkd --connections 64", rows[0].Config.Command(3))
	require.Equal(t, "tarry bench --start 1 --scenario add --protocol beanstalkd --server beanstalkd-fsync --connections 64 --pipeline 32", rows[4].Config.Command(1))
}

func TestARealBeanstalkdIsMeasuredByTheSameProgram(t *testing.T) {
	if !HaveBeanstalkd() {
		t.Skip("no beanstalkd is installed")
	}
	for _, server := range []Server{RealBeanstalkd, FsyncBeanstalkd} {
		t.Run(string(server), func(t *testing.T) {
			c := Defaults(Cycle, Beanstalkd)
			c.Server, c.Connections, c.Warmup, c.Duration = server, 2, 20*time.Millisecond, 200*time.Millisecond
			res, err := Local(t.Context(), c, 1, "", t.TempDir(), slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			require.Positive(t, res.Jobs)
			require.Zero(t, res.Failures)
		})
	}
	c := Defaults(Add, Beanstalkd)
	c.Server = RealBeanstalkd
	_, err := Local(t.Context(), c, 3, "", t.TempDir(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "start is 3")
}
