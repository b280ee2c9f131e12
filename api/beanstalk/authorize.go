package beanstalk

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"tarry/api/access"
	"tarry/auth"
	"tarry/job"
)

// via is the name of this protocol in the audit log.
const via = "beanstalkd"

// place is what a command needs its verbs on. With the zero value nobody may send it.
type place int

const (
	nobody       place = iota
	everybody          // no verbs: everybody may send it
	onConnection       // no verbs: it is about the connection, for who may do anything at all
	onTopicOfJob       // the state machine knows it; first, one of the verbs on some topic
	onUsed             // the tube that the connection uses
	onNamed            // the tube that the command names
	onWatched          // the tubes that the connection watches
	onSome             // one of the verbs on some topic, or on the cluster
)

// need is what a client must be allowed to do for a command.
//
// As over HTTP it is the first of three looks. Then access.Queue looks at the topics of an
// operation, and at what a read shows. The state machine decides.
type need struct {
	on    place
	verbs auth.Verbs
}

var needs = [verbs]need{
	unknown:      {on: everybody}, // and does nothing
	authenticate: {on: everybody},
	quit:         {on: everybody},

	use:              {on: onConnection},
	watch:            {on: onConnection},
	ignore:           {on: onConnection},
	listTubeUsed:     {on: onConnection},
	listTubesWatched: {on: onConnection},

	put:            {onUsed, auth.Add},
	reserve:        {onWatched, auth.Consume},
	reserveTimeout: {onWatched, auth.Consume},
	reserveJob:     {onTopicOfJob, auth.Consume},
	release:        {onTopicOfJob, auth.Consume},
	bury:           {onTopicOfJob, auth.Consume},
	touch:          {onTopicOfJob, auth.Consume},
	deleteJob:      {onTopicOfJob, auth.Consume | auth.Manage}, // consume is enough for a job that the connection has reserved
	peekJob:        {onTopicOfJob, auth.Read},
	statsJob:       {onTopicOfJob, auth.Read},
	peekReady:      {onUsed, auth.Read},
	peekDelayed:    {onUsed, auth.Read},
	peekBuried:     {onUsed, auth.Read},
	statsTube:      {onNamed, auth.Read},
	listTubes:      {onSome, auth.Read},                // it lists those that may be read
	stats:          {onSome, auth.Read | auth.Observe}, // it counts those, and shows the process to who may observe
	kick:           {onUsed, auth.Manage},
	kickJob:        {onTopicOfJob, auth.Manage},
	pauseTube:      {onNamed, auth.Manage},
}

// begin makes the client the cause of what a command does.
func (c *conn) begin(cmd command) {
	s := c.server.Access.State()
	if s != c.who.state {
		c.identify(s)
	}
	if s.Mode() == modeOff && c.who.secret.ID() == "" && c.who.cert.TokenID == "" && !c.audited(cmd) {
		c.request, c.ctx = nil, c.base // most commands to an open cluster
		return
	}
	c.request = &access.Request{
		Principal: c.who.principal, Secret: c.who.secret, Certificate: c.who.cert, Remote: c.remote,
		Via: via, Call: names[cmd.verb], Resource: c.resource(cmd),
	}
	c.ctx = c.by(c.base)
}

// by returns a context in which the client causes what is done.
func (c *conn) by(ctx context.Context) context.Context {
	if c.request == nil {
		return ctx
	}
	return access.NewContext(ctx, c.request)
}

// resource names what a command is about, for the audit log.
func (c *conn) resource(cmd command) string {
	switch n := &needs[cmd.verb]; {
	case n.on == onUsed:
		return "topic " + c.used
	case n.on == onNamed:
		return "topic " + cmd.tube
	case n.on == onTopicOfJob:
		return "job " + strconv.FormatUint(cmd.id, 10)
	}
	return ""
}

// check refuses a command that the client certainly may not send.
func (c *conn) check(cmd command) error {
	s, n, a := c.who.state, &needs[cmd.verb], c.server.Access
	switch {
	case n.on == nobody:
		return access.Unauthorized()
	case n.on == everybody || s.Mode() == modeOff:
		return nil
	case c.isStranger():
		a.Denied(c.ctx, auth.NoToken, n.verbs, "", false)
		return access.Unauthorized()
	case n.on == onConnection:
		return nil
	case s.Mode() != enforce && n.verbs&(auth.Add|auth.Consume|auth.Manage) != 0:
		return nil // what would be denied of it is reported once, where its topics are known
	}
	switch n.on {
	case onUsed:
		return a.Allow(c.ctx, n.verbs, c.used)
	case onNamed:
		return a.Allow(c.ctx, n.verbs, cmd.tube)
	case onWatched:
		return a.AllowOn(c.ctx, n.verbs, c.reservable())
	}
	return a.AllowSome(c.ctx, n.verbs)
}

// charge counts a command by the limits of the client's token. What ends a reservation of the
// connection is never refused.
func (c *conn) charge(cmd command) error {
	n := &needs[cmd.verb]
	if n.on == everybody || c.who.principal.IsAnonymous() {
		return nil
	}
	held := false
	switch cmd.verb {
	case release, bury, touch, deleteJob:
		_, held = c.held.ref(cmd.id)
	}
	if held && cmd.verb == touch { // unlike the others it can be sent again and again
		return c.server.Access.ChargeTouch(c.who.principal.TokenID(), c.held.coversTouch(cmd.id))
	}
	bytes := int64(0)
	switch cmd.verb {
	case put:
		if int64(cmd.n) <= int64(c.server.MaxJobSize) && !cmd.trailing { // else it is refused, whatever is sent
			bytes = int64(cmd.n)
		}
	case reserve, reserveTimeout, reserveJob:
		bytes = 1 // so that it waits until a debt is paid
	}
	return c.server.Access.Charge(c.who.principal.TokenID(), 1, bytes, held)
}

// decline replies to a command that is refused before it is begun.
func (c *conn) decline(cmd command, reply func()) error {
	if cmd.verb == put && !cmd.trailing {
		if err := c.dropBody(int(cmd.n)); err != nil {
			return err
		}
	}
	if c.ahead.job != nil { // it was reserved for this command
		c.giveBack()
	}
	reply()
	return c.flushFull()
}

// allows reports whether the client may do verbs on a topic. It denies nothing.
func (c *conn) allows(verbs auth.Verbs, topic string) bool {
	s := c.who.state
	return s.Mode() != enforce || s.Check(c.who.principal, time.Now().UnixMilli(), verbs, topic) == auth.Allowed
}

// reservable returns the tubes that a reserve takes jobs from: all that the client watches. But
// every connection watches the default tube at first. If the client watches others, too, may not
// consume from it and has not asked for it, the reserve goes without it.
func (c *conn) reservable() []string {
	if len(c.watched) == 1 || c.asked || c.allows(auth.Consume, defaultTube) {
		return c.watched
	}
	return slices.DeleteFunc(slices.Clone(c.watched), func(tube string) bool { return tube == defaultTube })
}

// mayReserve reports whether a reserve of the client is allowed. It denies nothing.
func (c *conn) mayReserve() bool {
	if c.who.state.Mode() != enforce {
		return true
	}
	return !slices.ContainsFunc(c.reservable(), func(tube string) bool { return !c.allows(auth.Consume, tube) })
}

// audited reports whether the audit log has a command even if it is allowed.
func (c *conn) audited(cmd command) bool {
	if cmd.verb == deleteJob { // of what it has reserved it is a finish
		_, held := c.held.ref(cmd.id)
		return !held
	}
	return needs[cmd.verb].verbs == auth.Manage
}

// record writes a command to the audit log, with what was replied.
func (c *conn) record(said string) {
	switch word, _, _ := strings.Cut(said, " "); word {
	case "KICKED", "DELETED", "PAUSED":
		c.server.Access.Record(c.request, auth.Manage, "")
	case "": // denied
	default:
		c.server.Access.Record(c.request, auth.Manage, job.Code(strings.ToLower(word)))
	}
}
