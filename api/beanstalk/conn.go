package beanstalk

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"tarry/api/access"
	"tarry/api/httpx"
	"tarry/auth"
	"tarry/internal/addrlimit"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// flushBytes is how many bytes of replies to a pipeline are collected before they
// are written.
const flushBytes = 32 << 10

// countedBytes is how much of a reply belongs to what a connection costs. More counts in the budget
// of bytes while the client has not read it.
const countedBytes = 4 << 10

// replyGrace is how long a client may leave a reply that counts unread, beside httpx.ReadTime.
const replyGrace = 30 * time.Second

// keepBytes is the largest buffer that a connection keeps for its next reply.
const keepBytes = 2 << 10

// errHTTP ends a connection that speaks HTTP, before any of its lines is executed.
var errHTTP = errors.New("an HTTP request was sent to the port for beanstalkd clients")

// errClose ends a connection without a further reply.
var errClose = errors.New("the connection ends here")

// conn is one client. All fields but net, cancel, known and ended belong to the goroutine that
// runs serve.
type conn struct {
	server *Server
	net    net.Conn
	base   context.Context // ends when the connection is closed by force
	cancel context.CancelFunc
	remote string // address of the client
	in     *input
	out    []byte // replies that are not written yet
	run    run

	bound   func() (auth.Secret, error) // the token of its listener; nil: that has none
	who     identity
	place   access.Connection // among those of its token
	known   atomic.Bool       // it has a token
	ended   atomic.Bool       // it must not execute another command; see cut
	request *access.Request   // the present command; nil: it is nobody's
	ctx     context.Context   // base, with the client as the cause
	said    string            // the last reply of one line

	used    string
	watched []string // in the order of watching
	asked   bool     // the client has asked to watch the default tube
	held    reservations
	ahead   ahead
	share   addrlimit.Share // of the server's bytes for bodies
	names   addrlimit.Share // of the names of tubes
	claimed int64           // of it
	awaits  bool            // a body is being read, with a deadline

	returning *returning // nil: it has not reserved yet
	settled   bool       // see awaitReturns

	producer, worker bool
	greeted          bool // its first bytes were checked: it is not an HTTP client
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, net: nc, in: newInput(nc), used: defaultTube, watched: []string{defaultTube}}
	c.remote = nc.RemoteAddr().String()
	c.share, c.names = s.bodies.Of(c.remote), s.tubes.room.Of(c.remote)
	c.base, c.cancel = context.WithCancel(context.Background())
	c.ctx = c.base
	return c
}

// serve executes commands in order until the client disconnects or the server
// shuts down. It does not recover panics: they are defects that must be seen.
func (c *conn) serve() {
	c.server.tubes.use(c.used, 1, c.names)
	c.server.tubes.watch(defaultTube, 1, c.names)
	c.welcome()
	err := c.commands()
	if err == nil || errors.Is(err, errClose) {
		err = c.flush()
	}
	if err != nil {
		c.server.Logger.Debug("beanstalkd connection ended", "client", c.net.RemoteAddr().String(), "cause", err)
	}
	if c.who.refused {
		c.linger()
	}
	c.net.Close()
	c.in.close()
	c.farewell()
	c.place.Close()
	c.leave()
	c.cancel()
}

// leave releases the jobs of the connection and removes it from all counts.
func (c *conn) leave() {
	c.returnJobs()
	if c.returning != nil {
		c.server.returns.remove(c.returning)
	}
	c.unclaim(c.claimed)
	c.server.tubes.use(c.used, -1, c.names)
	for _, name := range c.watched {
		c.server.tubes.watch(name, -1, c.names)
	}
	if c.producer {
		c.server.counts.producers.Add(-1)
	}
	if c.worker {
		c.server.counts.workers.Add(-1)
	}
}

// commands executes commands and returns why the connection ends.
func (c *conn) commands() error {
	for {
		if c.ended.Load() || c.who.refused {
			c.commit()
			return errClose
		}
		if !c.greeted {
			http, decided := startsHTTP(c.in.data())
			if http {
				return errHTTP
			}
			c.greeted = decided
		}
		line, state := c.in.line()
		switch state {
		case partial:
			// There is no further command until the client sends more, so the
			// collected puts and replies are sent now.
			c.commit()
			if err := c.flush(); err != nil {
				return err
			}
			if c.server.ctx.Err() != nil {
				return errClose
			}
			if err := c.fill(); err != nil {
				return err
			}
		case tooLong:
			c.next(unknown)
			c.say(badFormat)
		case whole:
			if err := c.execute(line); err != nil {
				return err
			}
		}
	}
}

func (c *conn) execute(line []byte) error {
	if !c.who.looked && !bytes.HasPrefix(line, []byte(authWord+" ")) {
		if err := c.takeCertificate(); err != nil {
			return err
		}
	}
	cmd, bad := parse(line)
	if bad {
		cmd.verb = unknown
	}
	c.next(cmd.verb)
	if cmd.verb == unknown { // it counts as far as the limits of the token allow, and gets its reply
		_ = c.server.Access.Charge(c.who.principal.TokenID(), 1, 0, false)
	}
	if bad {
		c.say(badFormat)
		return nil
	}
	if cmd.verb != put || c.who.state != c.server.Access.State() {
		c.commit() // all other commands are executed after the puts before them
	}
	if cmd.verb != put || len(c.run.ops) == 0 {
		c.begin(cmd)
	}
	c.server.counts.commands[cmd.verb].Add(1)
	if c.check(cmd) != nil {
		return c.decline(cmd, c.refuse)
	}
	if c.charge(cmd) != nil {
		return c.decline(cmd, func() { c.say(outOfMemory) })
	}
	c.awaitReturns(cmd.verb)
	if !c.audited(cmd) {
		return c.dispatch(cmd)
	}
	c.said = ""
	err := c.dispatch(cmd)
	c.record(c.said)
	return err
}

func (c *conn) dispatch(cmd command) error {
	switch cmd.verb {
	case put:
		return c.put(cmd)
	case authenticate:
		return c.authenticate(cmd.token)
	case unknown:
		c.say(unknownCommand)
	case quit:
		return errClose
	case reserve:
		return c.reserve(forever)
	case reserveTimeout:
		return c.reserve(time.Duration(cmd.seconds) * time.Second)
	case reserveJob:
		c.reserveJob(cmd.id)
	case deleteJob:
		c.delete(cmd.id)
	case release:
		c.release(cmd)
	case bury:
		c.bury(cmd)
	case touch:
		c.touch(cmd.id)
	case kick:
		c.kick(cmd.n)
	case kickJob:
		c.kickJob(cmd.id)
	case use, watch, ignore, listTubeUsed, listTubesWatched:
		c.tubes(cmd)
	default:
		c.inspect(cmd)
	}
	return c.flushFull()
}

// tubes executes the commands about the connection's own tubes.
func (c *conn) tubes(cmd command) {
	switch cmd.verb {
	case use:
		if !c.server.tubes.use(cmd.tube, 1, c.names) {
			c.say(outOfMemory)
			return
		}
		c.server.tubes.use(c.used, -1, c.names)
		c.used = cmd.tube
		c.say("USING " + c.used)
	case watch:
		c.watch(cmd.tube)
	case ignore:
		c.ignore(cmd.tube)
	case listTubeUsed:
		c.say("USING " + c.used)
	case listTubesWatched:
		c.list(c.watched)
	}
}

func (c *conn) watch(tube string) {
	c.asked = c.asked || tube == defaultTube
	if !slices.Contains(c.watched, tube) && !c.watchAlso(tube) {
		c.say(outOfMemory)
		return
	}
	c.say("WATCHING " + strconv.Itoa(len(c.watched)))
}

// watchAlso reports whether there was room for the name: it counts in the budget of bytes.
func (c *conn) watchAlso(tube string) bool {
	if len(c.watched) == job.MaxReserveTopics || !c.claim(nameBytes(tube)) {
		return false
	}
	if !c.server.tubes.watch(tube, 1, c.names) {
		c.unclaim(int64(nameBytes(tube)))
		return false
	}
	c.watched = append(c.watched, tube) // beyond what a finished reserve may still read
	return true
}

// nameBytes is what a watched name takes in memory; all connections watch the default tube at first.
func nameBytes(tube string) int {
	const references = 128 // in the connection, and among the node's tubes
	if tube == defaultTube {
		return 0
	}
	return len(tube) + references
}

func (c *conn) ignore(tube string) {
	at := slices.Index(c.watched, tube)
	if at >= 0 && len(c.watched) == 1 {
		c.say("NOT_IGNORED")
		return
	}
	if at >= 0 {
		// A new list: a finished reserve may still read the old one.
		c.watched = slices.Concat(c.watched[:at], c.watched[at+1:])
		c.server.tubes.watch(tube, -1, c.names)
		c.unclaim(int64(nameBytes(tube)))
	}
	c.say("WATCHING " + strconv.Itoa(len(c.watched)))
}

// The replies without arguments.
const (
	badFormat      = "BAD_FORMAT"
	unknownCommand = "UNKNOWN_COMMAND"
	internalError  = "INTERNAL_ERROR"
	outOfMemory    = "OUT_OF_MEMORY"
	notFound       = "NOT_FOUND"
	draining       = "DRAINING"
	jobTooBig      = "JOB_TOO_BIG"
	expectedCRLF   = "EXPECTED_CRLF"
	buried         = "BURIED"
	deadlineSoon   = "DEADLINE_SOON"
	timedOut       = "TIMED_OUT"
	authorized     = "AUTHORIZED"
	unauthorized   = "UNAUTHORIZED"
)

// say replies with one line, after the replies to all earlier commands.
func (c *conn) say(line string) {
	c.commit()
	c.said = line
	c.server.failures.count(line)
	c.out = append(append(c.out, line...), "\r\n"...)
}

// give replies with a job.
func (c *conn) give(word string, id uint64, body []byte) {
	c.out = append(append(c.out, word...), ' ')
	c.out = strconv.AppendUint(c.out, id, 10)
	c.out = append(c.out, ' ')
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	c.out = append(c.out, "\r\n"...)
	c.out = append(c.out, body...)
	c.out = append(c.out, "\r\n"...)
}

// document replies with a YAML document.
func (c *conn) document(text []byte) {
	c.out = append(c.out, "OK "...)
	c.out = strconv.AppendInt(c.out, int64(len(text)), 10)
	c.out = append(c.out, "\r\n"...)
	c.out = append(c.out, text...)
	c.out = append(c.out, "\r\n"...)
}

// list replies with names, of which there may be many. The reply counts while it is made and sent.
func (c *conn) list(names []string) {
	const start, before = "---\n", "- "
	size := len(start)
	for _, name := range names {
		size += len(before) + len(name) + len("\n")
	}
	room := 2 * size // also of what it is copied to
	if !c.claim(room) {
		c.say(outOfMemory)
		return
	}
	defer c.unclaim(int64(room))
	text := append(make([]byte, 0, size), start...)
	for _, name := range names {
		text = append(append(append(text, before...), name...), '\n')
	}
	c.document(text)
}

// fail replies to a command that failed or whose outcome is unknown.
func (c *conn) fail(err error) {
	switch job.CodeOf(err) {
	case job.CodeNotFound:
		c.say(notFound)
	case job.CodeForbidden:
		c.refuse()
	case job.CodeOverloaded, job.CodeRateLimited, job.CodeTooManyTopics, job.CodeTopicFull, job.CodeOverQuota, job.CodeDiskLow:
		c.say(outOfMemory)
	case job.CodeTooLarge:
		c.say(jobTooBig)
	default:
		c.server.Logger.Debug("beanstalkd command failed", "client", c.net.RemoteAddr().String(), "error", err)
		c.say(internalError)
	}
}

// failed replies to a command that the state machine has refused to do with a job.
func (c *conn) failed(r *jobpb.Result) {
	if r.Code == jobpb.Code_FORBIDDEN {
		c.refuse()
		return
	}
	c.say(notFound)
}

// denied reports whether a command on a job was refused because the client may not do it. It may
// hide that there is such a job, which stays as it is.
func denied(r *jobpb.Result) bool {
	return r.Code != jobpb.Code_OK && r.GetDetails().GetDenied() != nil
}

func (c *conn) flushFull() error {
	if len(c.out) < flushBytes {
		return nil
	}
	return c.flush()
}

// flush writes the replies so far. It blocks while the client does not read.
func (c *conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	var err error
	if len(c.out) > countedBytes {
		err = c.flushCounted()
	} else {
		_, err = c.net.Write(c.out)
	}
	if c.out = c.out[:0]; cap(c.out) > keepBytes {
		c.out = nil
	}
	return err
}

// errNoReplyRoom ends a connection; its jobs are returned.
var errNoReplyRoom = errors.New("the node holds as many bytes of puts and replies as it may")

// flushCounted writes replies that count until the client has read them, which it must do in time.
func (c *conn) flushCounted() error {
	size := len(c.out)
	if !c.claim(size) {
		return errNoReplyRoom
	}
	defer c.unclaim(int64(size))
	c.setWriteDeadline(time.Now().Add(replyGrace + httpx.ReadTime(int64(size))))
	defer c.setWriteDeadline(time.Time{})
	_, err := c.net.Write(c.out)
	return err
}

// setWriteDeadline keeps the deadline of cut, which sets ended before it.
func (c *conn) setWriteDeadline(t time.Time) {
	c.net.SetWriteDeadline(t)
	if c.ended.Load() {
		c.net.SetWriteDeadline(time.Now().Add(lingerTime))
	}
}

// do checks and executes one operation. It returns nil when it has replied with a
// failure.
func (c *conn) do(op *jobpb.Op) *jobpb.Result {
	if err := oplog.CheckOp(op, job.Newest()); err != nil {
		c.fail(err)
		return nil
	}
	results, err := c.server.Queue.Do(c.ctx, []*jobpb.Op{op})
	if err != nil {
		c.fail(err)
		return nil
	}
	return results[0]
}
