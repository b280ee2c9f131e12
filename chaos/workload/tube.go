package workload

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"tarry/chaos/history"
)

// tube is one beanstalkd client: at most one connection, to the node it prefers
// until that node fails it.
type tube struct {
	id     int
	config Config
	rand   *rand.Rand
	at     int
	rec    *history.Recorder

	conn net.Conn // nil between connections
	in   *bufio.Reader
	// heard is when the connection last had a reply. What the server does
	// because of its end may happen from then on.
	heard int64
}

func newTube(id int, c Config) *tube {
	return &tube{id: id, config: c, rand: random(c, id), at: id, rec: c.Recorder}
}

func (t *tube) node() string {
	nodes := t.config.Nodes()
	return nodes[t.at%len(nodes)].Beanstalk
}

// connect reports whether there is a connection, after it made one if need be,
// and greeted it with the given lines, which have one reply each.
func (t *tube) connect(greeting ...string) bool {
	if t.conn != nil {
		return true
	}
	conn, err := net.DialTimeout("tcp", t.node(), callTimeout)
	if err != nil {
		t.at++
		return false
	}
	t.conn, t.in, t.heard = conn, bufio.NewReader(conn), t.rec.Now()
	for _, line := range greeting {
		if _, err := t.ask(callTimeout, line); err != nil {
			return false
		}
	}
	return true
}

// hangUp closes the connection; the next is made to the next node.
func (t *tube) hangUp() {
	if t.conn == nil {
		return
	}
	t.conn.Close() // it was of no use any more, or is left on purpose
	t.conn, t.in = nil, nil
	t.at++
}

// ask sends a command, which may have a body behind its line, and reads the line
// that answers. An error ends the connection.
func (t *tube) ask(limit time.Duration, command string) (string, error) {
	return t.line(limit, command+"\r\n")
}

// line sends text, which may be empty, and reads a line.
func (t *tube) line(limit time.Duration, text string) (string, error) {
	reply, err := t.exchange(limit, text)
	if err != nil {
		t.hangUp()
		return "", err
	}
	t.heard = t.rec.Now()
	return reply, nil
}

func (t *tube) exchange(limit time.Duration, text string) (string, error) {
	if err := t.conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if text != "" {
		if _, err := io.WriteString(t.conn, text); err != nil {
			return "", err
		}
	}
	reply, err := t.in.ReadString('\n')
	return strings.TrimSuffix(reply, "\r\n"), err
}

// body reads n bytes and the line's end behind them.
func (t *tube) body(n int) (string, error) {
	data := make([]byte, n+2)
	if _, err := io.ReadFull(t.in, data); err != nil {
		t.hangUp()
		return "", err
	}
	return string(data[:n]), nil
}

// outcomeOf judges a reply: the word that says it is done, words that say that
// nothing was done, and everything else, which leaves it open.
func outcomeOf(reply string, err error, done ...string) history.Outcome {
	if err != nil {
		return history.Unknown
	}
	word, _, _ := strings.Cut(reply, " ")
	for _, d := range done {
		if word == d {
			return history.OK
		}
	}
	switch word {
	case "NOT_FOUND", "DRAINING", "OUT_OF_MEMORY", "JOB_TOO_BIG", "NOT_IGNORED":
		return history.Fail
	}
	return history.Unknown
}

// tubeProducer puts jobs, several in one packet. beanstalkd's puts have no id of
// the client's, so one whose outcome is open is not repeated: it would be a second
// job.
type tubeProducer struct {
	*tube
	made int
}

func newTubeProducer(id int, c Config) client { return &tubeProducer{tube: newTube(id, c)} }

// maxPipeline bounds the puts of one packet; pipelineThink is how much longer the
// pause between packets is.
const (
	maxPipeline   = 30
	pipelineThink = 10
)

func (p *tubeProducer) run(ctx context.Context) {
	defer p.hangUp()
	for think(ctx, p.config, p.rand, pipelineThink) {
		topic := oneOf(p.rand, p.config.Tubes)
		if !p.connect() {
			continue
		}
		if reply, err := p.ask(callTimeout, "use "+topic); err != nil || reply != "USING "+topic {
			p.hangUp()
			continue
		}
		p.puts(topic, 1+p.rand.IntN(maxPipeline))
	}
}

// puts sends n puts and then reads their replies. The first that is lost leaves
// the rest open too.
func (p *tubeProducer) puts(topic string, n int) {
	ops := make([]history.Op, n)
	var text strings.Builder
	for i := range ops {
		p.made++
		name := fmt.Sprintf("%s-t%d-%d", p.config.Name, p.id, p.made)
		delay := time.Duration(p.rand.IntN(3)) * time.Second
		if p.rand.IntN(2) == 0 {
			delay = 0
		}
		ops[i] = history.Op{
			Kind: history.Add, Client: p.id, Node: p.node(), ID: name, Topic: topic, Body: bodyOf(p.rand, name),
			Delay: delay, TTR: jobTTR,
		}
		fmt.Fprintf(&text, "put 1024 %d %d %d\r\n%s\r\n", delay/time.Second, jobTTR/time.Second, len(ops[i].Body), ops[i].Body)
	}
	invoke, send := p.rec.Now(), text.String()
	for i := range ops {
		op := &ops[i]
		op.Invoke, op.Outcome = invoke, history.Unknown
		if p.conn != nil {
			reply, err := p.line(callTimeout, send)
			send = ""
			op.Outcome = outcomeOf(reply, err, "INSERTED")
			op.Seq = number(reply)
		}
		op.Complete = p.rec.Now()
	}
	p.rec.Record(ops...)
}

// number is the first number of a reply; 0 when it has none.
func number(reply string) uint64 {
	fields := strings.Fields(reply)
	if len(fields) < 2 {
		return 0
	}
	n, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0 // as in UNKNOWN_COMMAND and the like
	}
	return n
}
