package beanstalk_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"tarry/api/access"
	"tarry/api/audit"
	"tarry/api/beanstalk"
	"tarry/auth"
	"tarry/cluster"
	"tarry/job/jobpb"
)

const (
	authOff = jobpb.AuthMode_AUTH_OFF
	report  = jobpb.AuthMode_AUTH_REPORT
	enforce = jobpb.AuthMode_AUTH_ENFORCE
)

// guarded is a node whose beanstalkd port checks tokens.
type guarded struct {
	testing.TB
	node     *cluster.Node
	addr     string
	registry *prometheus.Registry
	ofTLS    *prometheus.Registry // of the port with TLS; nil: there is none
	audit    *audit.Log
	auditTo  string
	log      *lockedText
	options  beanstalk.Options
	tls      *tls.Config                 // of its clients; nil: they speak plain text
	bound    func() (auth.Secret, error) // the token of the port that secure opens; nil: none
}

// lockedText is a log that is read while it is written.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// guard starts a node with a token root that may do everything. change may change the options
// of its port.
func guard(t testing.TB, change ...func(*beanstalk.Options)) *guarded {
	t.Helper()
	ports := freePorts(t, 2)
	node, err := cluster.Start(cluster.Config{
		NodeID: "n1", DataDir: t.TempDir(), Version: "test", ClusterAddr: ports[0], GossipAddr: ports[1], HTTPAdvertise: "127.0.0.1:1",
		BootstrapExpect: 1, Logger: testLogger(t), Fatal: func(err error) { t.Errorf("fatal: %v", err) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { node.Stop() })
	require.Eventually(t, func() bool { return node.Readiness().Ready }, patience, 10*time.Millisecond)
	g := &guarded{TB: t, node: node, registry: prometheus.NewRegistry(), log: &lockedText{}, auditTo: filepath.Join(t.TempDir(), "audit.log")}
	g.audit, err = audit.Open(g.auditTo, testLogger(t))
	require.NoError(t, err)
	t.Cleanup(g.audit.Close)
	control := access.Open(access.Options{Source: node, Audit: g.audit, Registry: g.registry})
	t.Cleanup(control.Close)
	o := beanstalk.Options{Queue: node.Queue(), Access: control, Registry: g.registry, Logger: slog.New(slog.NewTextHandler(g.log, nil)), StrangerTime: time.Hour}
	for _, f := range change {
		f(&o)
	}
	g.addr, g.options = serve(t, o), o
	g.put("root", 0, "*", strings.Join(auth.VerbNames(), " "))
	return g
}

// do does an operation as the node.
func (g *guarded) do(op *jobpb.Op) *jobpb.Result {
	g.Helper()
	rs, err := g.node.Queue().Do(auth.NewContext(context.Background(), auth.System()), []*jobpb.Op{op})
	require.NoError(g, err)
	require.Equal(g, jobpb.Code_OK, rs[0].Code, rs[0].Message)
	return rs[0]
}

// secretOf makes the same text for the same id.
func secretOf(t testing.TB, id string) auth.Secret {
	sum := sha256.Sum256([]byte(id))
	s, err := auth.Generate(bytes.NewReader(sum[:]), id)
	require.NoError(t, err)
	return s
}

func ruleOf(t testing.TB, topics, verbs string) *jobpb.Rule {
	r, err := auth.ParseRule(strings.Fields(topics), strings.Fields(verbs))
	require.NoError(t, err)
	return r
}

// put makes a token with one rule, or changes its rule; empty topics: it has none.
func (g *guarded) put(id string, expires int64, topics, verbs string) {
	g.Helper()
	token := &jobpb.Token{Id: id, Hash: secretOf(g, id).Hash(), ExpiresMs: expires}
	if topics != "" {
		token.Rules = []*jobpb.Rule{ruleOf(g, topics, verbs)}
	}
	g.do(&jobpb.Op{Kind: &jobpb.Op_PutToken{PutToken: &jobpb.PutToken{Token: token}}})
}

func (g *guarded) revoke(id string) {
	g.Helper()
	g.do(&jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: id}}})
}

func (g *guarded) mode(mode jobpb.AuthMode, anonymous ...*jobpb.Rule) {
	g.Helper()
	g.do(&jobpb.Op{Kind: &jobpb.Op_SetAuth{SetAuth: &jobpb.SetAuth{Settings: &jobpb.AuthSettings{Mode: mode, Anonymous: anonymous}}}})
}

// denied returns how many denials were counted.
func (g *guarded) denied() (n float64) {
	g.Helper()
	families, err := g.registry.Gather()
	require.NoError(g, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "tarry_auth_denied_total" {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// hidesTokens requires that neither log has the text of a token.
func (g *guarded) hidesTokens() {
	g.Helper()
	g.audit.Close()
	audited, err := os.ReadFile(g.auditTo)
	require.NoError(g, err)
	require.NotContains(g, g.log.String()+string(audited), "tarry_")
}

// client is a client of a guarded port.
type client struct {
	testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

// as connects with the token of an id; empty: with none.
func (g *guarded) as(id string) *client {
	g.Helper()
	c := g.dial()
	if id != "" {
		require.Equal(g, "AUTHORIZED", c.say("auth "+secretOf(g, id).Text()))
	}
	return c
}

// patience ends a wait for what never happens, on machines of any load.
const patience = 2 * time.Minute

func (g *guarded) dial() *client {
	g.Helper()
	c := dial(g, g.addr)
	if g.tls != nil {
		config := g.tls.Clone()
		config.ServerName = "127.0.0.1"
		c.conn = tls.Client(c.conn, config)
		c.in.Reset(c.conn)
	}
	return c
}

func (c *client) send(line string) {
	c.Helper()
	require.NoError(c, c.conn.SetDeadline(time.Now().Add(patience)))
	_, err := io.WriteString(c.conn, line+"\r\n")
	require.NoError(c, err)
}

// say sends lines and returns the line of the reply, and the body behind it, if it has one.
func (c *client) say(line string) string {
	c.Helper()
	c.send(line)
	return c.reply()
}

var withBody = regexp.MustCompile(`^(?:OK|FOUND \d+|RESERVED \d+) (\d+)$`)

func (c *client) reply() string {
	c.Helper()
	require.NoError(c, c.conn.SetDeadline(time.Now().Add(patience)))
	line, err := c.in.ReadString('\n')
	require.NoError(c, err)
	line = strings.TrimSuffix(line, "\r\n")
	if m := withBody.FindStringSubmatch(line); m != nil {
		var size int
		fmt.Sscan(m[1], &size)
		body := make([]byte, size+2)
		_, err := io.ReadFull(c.in, body)
		require.NoError(c, err)
		line += "\n" + string(body[:size])
	}
	return line
}

// ends requires that the server closes the connection without another reply.
func (c *client) ends() {
	c.Helper()
	require.NoError(c, c.conn.SetDeadline(time.Now().Add(patience)))
	rest, err := io.ReadAll(c.in)
	if err != nil {
		require.False(c, errors.Is(err, os.ErrDeadlineExceeded), "the connection is still open")
	}
	require.Empty(c, string(rest))
}

// tried is a row of the matrix: a command, and what it needs.
type tried struct {
	command string // N: a ready job, B: a buried one
	verbs   auth.Verbs
	on      string // what the verbs are needed on: the tube, or a job, which who may not read it does not find
	done    string // reply when it is allowed
	cheap   bool   // it is decided by the connection alone whether the job is there
}

const (
	tube   = "tube"
	aJob   = "job"
	some   = "some" // it shows what may be read
	itself = ""     // the connection
)

var matrixCommands = []tried{
	{"put 0 0 60 1\r\nx", auth.Add, tube, `INSERTED \d+`, false},
	{"put 0 100 60 1\r\nx", auth.Add, tube, `INSERTED \d+`, false},
	{"reserve", auth.Consume, tube, `RESERVED \d+ 1\nx`, false},
	{"reserve-with-timeout 0", auth.Consume, tube, `RESERVED \d+ 1\nx`, false},
	{"reserve-job N", auth.Consume, aJob, `RESERVED \d+ 1\nx`, false},
	{"release N 0 0", auth.Consume, aJob, `NOT_FOUND`, true},
	{"bury N 0", auth.Consume, aJob, `NOT_FOUND`, true},
	{"touch N", auth.Consume, aJob, `NOT_FOUND`, true},
	{"delete N", auth.Manage, aJob, `DELETED`, false},
	{"peek N", auth.Read, aJob, `FOUND \d+ 1\nx`, false},
	{"stats-job N", auth.Read, aJob, `(?s)OK \d+\n.*tube: "mine".*`, false},
	{"peek-ready", auth.Read, tube, `FOUND \d+ 1\nx`, false},
	{"peek-delayed", auth.Read, tube, `FOUND \d+ 1\nx`, false},
	{"peek-buried", auth.Read, tube, `FOUND \d+ 1\nx`, false},
	{"stats-tube mine", auth.Read, tube, `(?s)OK \d+\n.*name: "mine".*`, false},
	{"list-tubes", auth.Read, some, `(?s)OK \d+\n.*- mine\n.*`, false},
	{"stats", auth.Read | auth.Observe, some, `(?s)OK \d+\n.*current-jobs-delayed: [1-9].*`, false},
	{"kick 1", auth.Manage, tube, `KICKED 1`, false},
	{"kick-job B", auth.Manage, aJob, `KICKED`, false},
	{"pause-tube mine 0", auth.Manage, tube, `PAUSED`, false},
	{"use mine", 0, itself, `USING mine`, false},
	{"watch mine", 0, itself, `WATCHING \d`, false},
	{"ignore other", 0, itself, `WATCHING 1`, false},
	{"list-tube-used", 0, itself, `USING mine`, false},
	{"list-tubes-watched", 0, itself, `(?s)OK \d+\n.*`, false},
}

// matrixCaller is a column: who sends the command.
type matrixCaller struct {
	token    string
	mine     auth.Verbs // on the tube, and on the cluster
	other    bool       // it has all verbs on another tube
	nobody   bool       // it has no token that is accepted
	accepted bool       // its auth is replied OK under enforce
}

func matrixCallers(g *guarded) []matrixCaller {
	callers := []matrixCaller{{nobody: true, accepted: true}, {token: "never-made", nobody: true}, {token: "ended", nobody: true}}
	all := strings.Join(auth.VerbNames()[:5], " ")
	g.put("ended", 1, "*", all)
	for _, name := range auth.VerbNames() {
		topics := "mine"
		if name == "observe" || name == "operate" || name == "admin" {
			topics = "*"
		}
		g.put(name, 0, topics, name)
		v, _ := auth.ParseVerb(name)
		callers = append(callers, matrixCaller{token: name, mine: auth.Verbs(1) << v, accepted: true})
	}
	g.put("elsewhere", 0, "other.*", all)
	g.put("nothing", 0, "", "")
	return append(callers, matrixCaller{token: "elsewhere", other: true, accepted: true}, matrixCaller{token: "nothing", accepted: true},
		matrixCaller{token: "root", mine: ^auth.Verbs(0), accepted: true})
}

// want is the reply, and whether a denial is counted.
func (r tried) want(mode jobpb.AuthMode, c matrixCaller) (reply string, counts bool) {
	may := r.verbs == 0 || r.verbs&c.mine != 0
	switch {
	case mode == authOff:
		return r.done, false
	case mode == report:
		return r.done, !may && !r.cheap && !(r.on == some && c.other)
	case c.nobody:
		return "INTERNAL_ERROR", true
	case may && r.on == some && c.mine&auth.Read == 0:
		return `(?s)OK \d+\n.*current-jobs-delayed: 0\n.*pid: [1-9].*`, false // it may observe
	case may:
		return r.done, false
	case r.on == aJob && c.other, r.command == "delete N" && c.mine&auth.Consume != 0:
		return "NOT_FOUND", !r.cheap
	case r.on == some && c.other:
		return `(?s)OK \d+\n(---\n$|.*current-jobs-delayed: 0\n.*pid: 0\n.*hostname: "unknown".*)`, false
	}
	return "INTERNAL_ERROR", true
}

// Each command is tried by everybody, in each mode.
func TestWhoMaySendWhat(t *testing.T) {
	g := guard(t)
	callers := matrixCallers(g)
	for _, mode := range []jobpb.AuthMode{authOff, report, enforce} {
		g.mode(mode)
		root := g.as("root")
		root.say("use mine")
		add := func(delay int) (id string) {
			id, ok := strings.CutPrefix(root.say(fmt.Sprintf("put 0 %d 60 1\r\nx", delay)), "INSERTED ")
			require.True(t, ok)
			return id
		}
		bury := func(id string) string {
			require.Contains(t, root.say("reserve-job "+id), "RESERVED")
			require.Equal(t, "BURIED", root.say("bury "+id+" 0"))
			return id
		}
		add(100_000)
		for _, r := range matrixCommands {
			for _, c := range callers {
				about := fmt.Sprintf("%q by %+v in mode %s", r.command, c, mode)
				ready, buried := add(0), bury(add(0))
				command := strings.NewReplacer(" N", " "+ready, " B", " "+buried).Replace(r.command)
				k := dial(t, g.addr)
				before := g.denied()
				if c.token != "" {
					reply := k.say("auth " + secretOf(t, c.token).Text())
					if mode == enforce && !c.accepted {
						require.Equal(t, "UNAUTHORIZED", reply, about)
						require.Equal(t, before+1, g.denied(), about)
						k.ends()
						continue
					}
					require.Equal(t, "AUTHORIZED", reply, about)
				}
				if mode != enforce || !c.nobody {
					for _, line := range []string{"use mine", "watch mine", "ignore default"} {
						k.say(line)
					}
				}
				before = g.denied()
				reply, counts := r.want(mode, c)
				require.Regexp(t, "^"+reply+"$", k.say(command), about)
				if counts {
					require.Greater(t, g.denied(), before, about)
				} else {
					require.Equal(t, before, g.denied(), about)
				}
				require.NoError(t, k.conn.Close())
			}
		}
	}
	g.hidesTokens()
}
