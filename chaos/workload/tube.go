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

	"tarry/bench/localcluster"
	"tarry/chaos/history"
)

// tube is one beanstalkd client: at most one connection, to the node that it uses until a
// command fails.
type tube struct {
	id     int
	config Config
	rand   *rand.Rand
	at     int
	rec    *history.Recorder

	conn net.Conn // nil between connections
	in   *bufio.Reader
	// lastReply is when the connection last had a reply. The server may detect the end of
	// the connection at any time after that.
	lastReply int64
}

func newTube(id int, c Config) *tube {
	return &tube{id: id, config: c, rand: random(c, id), at: id, rec: c.Recorder}
}

func (t *tube) node() string {
	nodes := t.config.Nodes()
	return nodes[t.at%len(nodes)].Beanstalk
}

// connect reports whether there is a connection. If there was none it opens one and sends
// the given lines, which have one reply each.
func (t *tube) connect(greeting ...string) bool {
	if t.conn != nil {
		return true
	}
	conn, err := net.DialTimeout("tcp", t.node(), callTimeout)
	if err != nil {
		t.at++
		return false
	}
	t.conn, t.in, t.lastReply = conn, bufio.NewReader(conn), t.rec.Now()
	if token := localcluster.Token(); token != "" {
		greeting = append([]string{"auth " + token}, greeting...)
	}
	for _, line := range greeting {
		if _, err := t.ask(callTimeout, line); err != nil {
			return false
		}
	}
	return true
}

// hangUp closes the connection. The next one is to the next node.
func (t *tube) hangUp() {
	if t.conn == nil {
		return
	}
	t.conn.Close() // it has failed, or is closed on purpose
	t.conn, t.in = nil, nil
	t.at++
}

// ask sends a command, which may have a body after its line, and reads the line of the
// reply. An error closes the connection.
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
	t.lastReply = t.rec.Now()
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

// body reads n bytes and the end of line after them.
func (t *tube) body(n int) (string, error) {
	data := make([]byte, n+2)
	if _, err := io.ReadFull(t.in, data); err != nil {
		t.hangUp()
		return "", err
	}
	return string(data[:n]), nil
}

// outcomeOf returns the outcome of a reply: done is the word for success, the others mean
// that nothing was done. After anything else the outcome is unknown.
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

// tubeProducer puts jobs, several in one packet. beanstalkd's puts have no id, so a put with
// an unknown outcome is not repeated: it could add a second job.
type tubeProducer struct {
	*tube
	made int
}

func newTubeProducer(id int, c Config) client { return &tubeProducer{tube: newTube(id, c)} }

// maxPipeline bounds the puts of one packet. pipelineThink is the factor of the pause
// between packets.
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

// puts sends n puts and then reads their replies. After the first lost reply the outcome of
// the rest is unknown too.
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

// number returns the first number of a reply; 0: there is none.
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
