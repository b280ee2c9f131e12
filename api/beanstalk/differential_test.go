package beanstalk_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/beanstalk/conformance"
	"tarry/internal/testseed"
)

var (
	seedFlag   = flag.Uint64("beanstalk.seed", 0, "seed of the differential test; 0 takes a new one")
	roundsFlag = flag.Int("beanstalk.rounds", 3000, "rounds of the differential test, each of a few commands")
)

// The test sends the same random commands to a real beanstalkd and to a node, from several
// connections, and compares all replies. The next round begins when both servers have
// replied, so that both see the same order.
func TestTarryAndBeanstalkdReplyAlike(t *testing.T) {
	t.Parallel()
	rounds := *roundsFlag
	if testing.Short() {
		rounds /= 2
	}
	for name, nodes := range map[string]int{"one node": 1, "a follower of three": 3} {
		t.Run(name, func(t *testing.T) {
			real := conformance.StartReal(t, conformance.Settings{}).Addr()
			// No job is kept for a reserve that has not arrived: other connections would miss it
			// meanwhile.
			addrs, leader := startNodes(t, nodes, -1)
			seed := *seedFlag
			if seed == 0 {
				seed = testseed.New()
			}
			t.Logf("repeat with -beanstalk.seed=%d -beanstalk.rounds=%d", seed, rounds)
			d := newDuel(t, rand.New(rand.NewPCG(seed, 0)), real, addrs[(leader+1)%nodes])
			for range rounds {
				d.round()
			}
			t.Logf("%d waits ended with a job; replies compared: %v", d.waits, d.seen)
			require.NotZero(t, d.waits)
			for _, word := range []string{"INSERTED", "RESERVED", "RELEASED", "BURIED", "KICKED", "DELETED", "TOUCHED", "PAUSED", "FOUND", "TIMED_OUT"} {
				require.NotZero(t, d.seen[word], "no reply was %s, so nothing was compared", word)
			}
		})
	}
}

const (
	clients = 4 // connections that are closed and opened again
	keeper  = 0 // the connection that always watches the lasting tubes
)

// comparison is the two servers and the state of both. Side 0 is beanstalkd.
type comparison struct {
	t      *testing.T
	rng    *rand.Rand
	addrs  [2]string
	conns  [1 + clients][2]*wire
	jobs   [2]map[string]int // number of the job by id
	ids    [][2]string       // ids by number
	taken  map[uint32]bool   // priorities and delays that are in use
	recent []string          // the last commands, for a report
	seen   map[string]int    // replies by their first word
	last   [1 + clients]int  // the job that each connection reserved last
	waits  int               // reserves that another connection ended
}

func newDuel(t *testing.T, rng *rand.Rand, real, tarry string) *comparison {
	d := &comparison{
		t: t, rng: rng, addrs: [2]string{real, tarry}, jobs: [2]map[string]int{{}, {}},
		taken: map[uint32]bool{}, seen: map[string]int{},
	}
	for i := range d.conns {
		d.dial(i)
	}
	t.Cleanup(func() {
		for _, pair := range d.conns {
			pair[0].Close()
			pair[1].Close()
		}
	})
	// These tubes stay, and so do their counts and pauses, on both sides.
	for _, tube := range append([]string{quiet}, lasting...) {
		d.exchange(keeper, "watch "+tube+"\r\n")
	}
	return d
}

func (d *comparison) dial(i int) {
	for side, addr := range d.addrs {
		c, err := dialWire(addr)
		require.NoError(d.t, err)
		d.conns[i][side] = c
	}
}

// round is a packet of a few commands, a wait that another connection ends, or the end of a
// connection.
func (d *comparison) round() {
	i := 1 + d.rng.IntN(clients)
	switch n := d.rng.IntN(100); {
	case n < 2:
		d.reconnect(i)
	case n < 6:
		d.waitForJob(i)
	default:
		var batch []string
		for range 1 + d.rng.IntN(5)*d.rng.IntN(2) {
			batch = append(batch, d.command(i)...)
		}
		d.exchange(i, batch...)
	}
}

// exchange sends texts in one packet and compares one reply to each. {7} in a text is
// replaced by the id of job 7. A text may be two lines that get one reply.
func (d *comparison) exchange(i int, texts ...string) {
	d.send(i, texts...)
	for _, text := range texts {
		d.compare(i, text)
	}
}

func (d *comparison) send(i int, texts ...string) {
	for side, c := range d.conns[i] {
		packet := d.fill(strings.Join(texts, ""), side)
		c.SetDeadline(time.Now().Add(patience))
		_, err := c.Write([]byte(packet))
		require.NoError(d.t, err)
	}
	d.recent = append(d.recent, fmt.Sprintf("%d> %.300q", i, texts))
	d.recent = d.recent[max(0, len(d.recent)-40):]
}

func (d *comparison) compare(i int, text string) (word string) {
	var replies [2]reply
	for side, c := range d.conns[i] {
		var err error
		if replies[side], err = c.reply(); err != nil {
			d.fail(i, text, fmt.Sprintf("side %d: %v; the other: %q", side, err, replies[0].line))
		}
	}
	word = replies[0].line[0]
	if word == "INSERTED" && replies[1].line[0] == word {
		for side := range d.jobs {
			d.jobs[side][replies[side].line[1]] = len(d.ids)
		}
		d.ids = append(d.ids, [2]string{replies[0].line[1], replies[1].line[1]})
	}
	if n, ok := d.jobs[0][replies[0].id()]; ok && word == "RESERVED" {
		d.last[i] = n
	}
	for side := range replies {
		replies[side].name(d.jobs[side])
	}
	if difference := diff(text, replies[0], replies[1]); difference != "" {
		d.fail(i, text, difference)
	}
	d.seen[word]++
	return word
}

func (d *comparison) fail(i int, text, what string) {
	d.t.Helper()
	require.FailNow(d.t, "the servers differ", "%s\nanswers on %d to %.300q\nbefore:\n%s", what, i, text, strings.Join(d.recent, "\n"))
}

// reconnect closes a connection and waits until both servers have detected that.
func (d *comparison) reconnect(i int) {
	quits := d.rng.IntN(2) == 0
	d.recent = append(d.recent, fmt.Sprintf("%d ends", i))
	for side := range d.addrs {
		if quits {
			d.conns[i][side].Write([]byte("quit\r\n"))
		} else {
			d.conns[i][side].Close()
		}
	}
	for side := range d.addrs {
		require.Eventually(d.t, func() bool {
			c := d.conns[keeper][side]
			c.SetDeadline(time.Now().Add(patience))
			fmt.Fprint(c, "stats\r\n")
			r, err := c.reply()
			return err == nil && bytes.Contains(r.body, fmt.Appendf(nil, "current-connections: %d\n", clients))
		}, patience, time.Millisecond)
		d.conns[i][side].Close()
	}
	d.dial(i)
	d.exchange(i, "list-tube-used\r\n") // both have accepted the new one
}

// waitForJob makes a connection wait at a tube that mostly has no ready job, for a job that
// another connection puts, kicks or releases.
func (d *comparison) waitForJob(i int) {
	other := 1 + i%clients
	var ignored []string
	for _, tube := range append([]string{"default", brief}, lasting...) {
		ignored = append(ignored, "ignore "+tube+"\r\n")
	}
	d.exchange(i, append([]string{"watch " + quiet + "\r\n"}, ignored...)...)
	d.exchange(other, "use "+quiet+"\r\n")
	const now, wait = "reserve-with-timeout 0\r\n", "reserve-with-timeout 10\r\n"
	put := func(delay int) string { return fmt.Sprintf("put %d %d 5000 1\r\nw\r\n", d.priority(), delay) }
	d.send(i, now)
	if d.compare(i, now) == "TIMED_OUT" {
		d.send(i, wait)
		switch d.rng.IntN(3) {
		case 0:
			d.exchange(other, put(0))
		case 1:
			d.exchange(other, put(1000), "kick 1\r\n")
		case 2:
			d.exchange(other, "pause-tube "+quiet+" 1000\r\n", put(0), "pause-tube "+quiet+" 0\r\n")
		}
		if d.compare(i, wait) == "RESERVED" {
			d.waits++
		}
	}
	d.exchange(other, "use "+d.tube()+"\r\n")
	d.exchange(i, "watch "+d.tube()+"\r\n", "ignore "+quiet+"\r\n")
}
