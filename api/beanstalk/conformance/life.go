package conformance

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Server is one that a test may treat as its own: it is drained, killed and
// started again.
type Server interface {
	Addr() string // host:port; the same after a restart
	// Drain asks it to refuse puts, as SIGUSR1 does. It takes effect soon.
	Drain() error
	// Restart kills it and starts it on the same data. It blocks until it serves.
	Restart() error
}

// Settings of a server that is started for one case.
type Settings struct {
	MaxJobSize int  // 0: 65535
	Durable    bool // keeps its jobs over a restart

	// Dir is where it keeps its jobs; empty: anywhere.
	Dir string
}

// putsToFill is how many jobs of a kilobyte fit into the rest of a disk at most.
const putsToFill = 100_000

// RunFullDisk fills the disk of a server that has just been started, up to the
// point where it should refuse puts, and frees it again.
func RunFullDisk(t *testing.T, addr string, fill, free func()) {
	s := &script{t: t, addr: addr, conns: map[string]*wire{}, bound: map[string]string{}}
	s.run(`
		a: put 0 0 9 1 | x => INSERTED {one}
		a: put 1 0 9 1 | y => INSERTED {two}`)
	fill()
	s.conns = map[string]*wire{}
	c, err := s.conn("a")
	require.NoError(t, err)
	job := "put 9 0 9 1000\r\n" + strings.Repeat("x", 1000) + "\r\n"
	reply := "INSERTED"
	for n := 0; n < putsToFill && strings.HasPrefix(reply, "INSERTED"); n++ {
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		_, err = io.WriteString(c, job)
		require.NoError(t, err)
		reply, err = c.in.ReadString('\n')
		require.NoError(t, err)
	}
	require.Equal(t, "OUT_OF_MEMORY\r\n", reply)
	s.run(`
		a: put 0 0 9 1001 | {x*1001} => OUT_OF_MEMORY
		a: delete {one} => DELETED
		a: reserve => RESERVED {two} 1 | y
		a: touch {two} => TOUCHED
		a: delete {two} => DELETED`)
	free()
	s.conns = map[string]*wire{}
	require.Eventually(t, func() bool {
		c, err := dial(addr)
		require.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, "put 0 0 9 1\r\nz\r\n")
		require.NoError(t, err)
		reply, err := c.in.ReadString('\n')
		require.NoError(t, err)
		return strings.HasPrefix(reply, "INSERTED ")
	}, patience, 50*time.Millisecond, "puts are taken again")
	s.run(`
		b: reserve => RESERVED {three} 1 | z`)
}

// lifeCase is a story in chapters, with something done to the server in between.
type lifeCase struct {
	name     string
	settings Settings
	between  func(Server) error
	chapters [2]string
}

var lives = []lifeCase{
	{"drain", Settings{}, Server.Drain, [2]string{`
		a: put 0 0 9 1 | x => INSERTED {one}`, `
		a: stats => yaml draining: true
		a: put 0 0 9 1 | x => DRAINING
		a>> put 0 0 9 1\r\nxyz
		a< EXPECTED_CRLF
		a: reserve => RESERVED {one} 1 | x
		a: release {one} 0 0 => RELEASED
		a: delete {one} => DELETED`}},
	{"a limit of ten bytes", Settings{MaxJobSize: 10}, func(Server) error { return nil }, [2]string{`
		a>> put 0 0 0 11\r\ndelete 9999\r\nput 0 0 0 1\r\nx\r\n
		a< JOB_TOO_BIG
		a< INSERTED {one}`, `
		a: put 0 0 0 10 | 0123456789 => INSERTED {two}`}},
	{"restart", Settings{Durable: true}, Server.Restart, [2]string{`
		a: put 1 0 9 5 | ready => INSERTED {ready}
		a: put 0 0 9 8 | released => INSERTED {released}
		a: reserve => RESERVED {released} 8 | released
		a: release {released} 3 1 => RELEASED
		a: put 0 0 9 6 | buried => INSERTED {buried}
		a: reserve => RESERVED {buried} 6 | buried
		a: bury {buried} 5 => BURIED
		a: put 2 1000 9 7 | delayed => INSERTED {delayed}
		a: put 0 0 9 7 | deleted => INSERTED {deleted}
		a: delete {deleted} => DELETED`, `
		b: peek {deleted} => NOT_FOUND
		b: stats-job {buried} => yaml state: buried; pri: 5
		b: stats-job {delayed} => yaml state: delayed; pri: 2; delay: 1000
		b: reserve => RESERVED {ready} 5 | ready
		b: reserve => RESERVED {released} 8 | released
		b: kick 9 => KICKED 1
		b: reserve => RESERVED {buried} 6 | buried
		b: put 0 0 9 1 | x => INSERTED {next}
		b: peek {next} => FOUND {next} 1 | x`}},
}

// RunLife runs the cases that need a server of their own.
func RunLife(t *testing.T, launch func(*testing.T, Settings) Server) {
	for _, c := range lives {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			server := launch(t, c.settings)
			s := &script{t: t, addr: server.Addr(), conns: map[string]*wire{}, bound: map[string]string{}}
			s.run(c.chapters[0])
			require.NoError(t, c.between(server))
			s.conns = map[string]*wire{} // a restart has closed them
			s.run(c.chapters[1])
		})
	}
}
