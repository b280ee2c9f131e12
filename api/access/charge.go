package access

import (
	"context"

	"tarry/auth"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// account is what a call has used of the limits of its token.
type account struct {
	usage *usage // nil: Queue does not count what the call does
	paid  int64  // operations that were counted when the call began
	bytes int64  // of its body that are not counted yet
	ahead int64  // of its body that were counted before they arrived
	// open is set while a call that is counted later was neither counted nor refused.
	open bool
	// crowded is set if the call may only end or prolong reservations, because its connection is
	// one too many.
	crowded bool
}

// Begin counts a call on a connection, of which nil is none. later is set for a call that may end
// or prolong reservations: Queue counts what it does when that is known, or End. Any other is one
// operation now, and is refused if the token has no more.
func (l *Limits) Begin(r *Request, c *Connection, later bool) error {
	id, a := r.Principal.TokenID(), &r.account
	if a.usage = l.usageOf(id); a.usage == nil {
		return nil
	}
	if c != nil {
		var err error
		if a.crowded, err = l.join(c, a.usage, id, later); err != nil {
			return err
		}
	}
	if later {
		a.open = true
		return l.possible(id, a, 0)
	}
	if err := l.charge(id, a, cost{ops: 1}); err != nil {
		return err
	}
	a.paid = 1
	return nil
}

// Crowded reports whether the connection of a call is one too many, so that it is to be closed.
func (r *Request) Crowded() bool { return r != nil && r.account.crowded }

// Received counts the body of a call before it is read: it refuses one that is too large for
// whatever the call does. Of a body of unknown length that is one byte, and the others are counted
// with read set when it was read.
func (l *Limits) Received(r *Request, bytes int64, read bool) error {
	if r == nil || r.account.usage == nil {
		return nil
	}
	id, a := r.Principal.TokenID(), &r.account
	if a.paid == 0 && !read {
		if err := l.possible(id, a, bytes); err != nil {
			return err
		}
	}
	a.bytes += bytes
	if a.paid == 0 {
		return nil
	}
	err := l.charge(id, a, cost{must: read})
	if !read && a.paid > 0 && a.bytes == 0 {
		a.ahead += bytes
	}
	return err
}

// Missing takes back what Received has counted of a body that did not arrive: who only announces a
// body must not use up what all clients of the token may send.
func (l *Limits) Missing(r *Request, bytes int64) {
	if r == nil || r.account.usage == nil || bytes <= 0 {
		return
	}
	a := &r.account
	uncounted := min(bytes, a.bytes)
	a.bytes -= uncounted
	counted := min(bytes-uncounted, a.ahead)
	a.ahead -= counted
	a.usage.giveBack(counted)
}

// GiveBack takes back bytes that Charge has counted.
func (l *Limits) GiveBack(id string, bytes int64) {
	if u := l.usageOf(id); u != nil && limitsOf(l.source.Auth(), id) != nil {
		u.giveBack(bytes)
	}
}

// refused ends what is known of a call that is refused. It costs nothing, but for a large body that
// was read already.
func (a *account) refused() {
	if a.open {
		a.usage.readInVain(a.bytes)
	}
	a.open, a.bytes, a.paid = false, 0, 0
}

// End counts a call that was to be counted later and did nothing, because it is malformed or not
// allowed.
func (l *Limits) End(r *Request) {
	if r != nil && r.account.open {
		_ = l.charge(r.Principal.TokenID(), &r.account, cost{ops: 1, ends: 1, must: true})
	}
}

// possible refuses a call that is counted later if nothing that it can do is allowed.
func (l *Limits) possible(id string, a *account, bytes int64) error {
	s := l.source.Auth()
	of := limitsOf(s, id)
	if of == nil || s.Mode() != jobpb.AuthMode_AUTH_ENFORCE { // what is only reported is so once, when it is counted
		return nil
	}
	limit, wait := a.usage.blocked(of, l.clock(), bytes)
	if wait == 0 {
		return nil
	}
	a.refused()
	return l.exceeded(s, id, limit, wait)
}

// Charge counts operations of a token, and bytes of bodies. Unless must is set it refuses, and
// counts nothing, what is above a limit.
func (l *Limits) Charge(id string, ops, bytes int64, must bool) error {
	return l.charge(id, &account{}, cost{ops: ops, bytes: bytes, must: must})
}

// ChargeTouch counts an operation that prolongs a reservation of the caller. With covered set it is
// the first one in TouchEvery, and is not refused.
func (l *Limits) ChargeTouch(id string, covered bool) error {
	c := cost{ops: 1, keeps: 1}
	if covered {
		c.sure = 1
	}
	return l.charge(id, &account{}, c)
}

// charge counts what a call does, of which operations may be paid, and the bytes of its body.
func (l *Limits) charge(id string, a *account, c cost) error {
	s := l.source.Auth()
	of := limitsOf(s, id)
	if of == nil {
		return nil
	}
	if a.crowded && !c.must && !c.keepsOnly() {
		a.refused()
		return l.exceeded(s, id, limitConnections, 0)
	}
	u := a.usage
	if u == nil {
		if u = l.usageOf(id); u == nil {
			return nil
		}
	}
	ops := c.ops
	c.ops = max(ops, a.paid) // nothing that is paid is given back, unless it is refused
	c.bytes += a.bytes
	limit, wait := u.take(of, l.clock(), a.paid, c)
	if limit == "" {
		a.open, a.bytes, a.paid = false, 0, c.ops-ops
		return nil
	}
	a.refused()
	return l.exceeded(s, id, limit, wait)
}

// paying returns the call of a context whose operations Queue counts; nil: there is none.
func paying(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	if r == nil || r.account.usage == nil || auth.FromContext(ctx).IsSystem() {
		return nil // it is nobody's, is counted elsewhere, or is the node's own
	}
	return r
}

// chargeOps counts the operations of a call before they are proposed.
func (l *Limits) chargeOps(ctx context.Context, ops []*jobpb.Op) error {
	r := paying(ctx)
	if r == nil {
		return nil
	}
	var c cost
	for _, op := range ops {
		c.add(op)
	}
	if c.ends+c.keeps > 0 {
		c.of = ops
	}
	return l.charge(r.Principal.TokenID(), &r.account, c)
}

// done takes note of what was replied to operations of a call.
func (l *Limits) done(ctx context.Context, ops []*jobpb.Op, results []*jobpb.Result) {
	if r := paying(ctx); r != nil && len(results) == len(ops) {
		r.account.usage.done(ops, results, l.clock())
	}
}

// finished is done for finishes.
func (l *Limits) finished(ctx context.Context, finishes []*jobpb.Finish, results []*jobpb.Result) {
	if r := paying(ctx); r != nil && len(results) == len(finishes) {
		r.account.usage.finished(finishes, results)
	}
}

// add adds an operation.
func (c *cost) add(op *jobpb.Op) {
	c.ops++
	if _, ends := oplog.EndOf(op); ends {
		c.ends++
	}
	if op.GetTouch() != nil {
		c.keeps++
	}
	if atomic := op.GetAtomicAdd(); atomic != nil {
		c.ops += int64(len(atomic.Adds)) - 1
		if atomic.Finish != nil {
			c.ops++
		}
	}
}

// chargeFinishes counts finishes of a call.
func (l *Limits) chargeFinishes(ctx context.Context, finishes []*jobpb.Finish) error {
	r := paying(ctx)
	if r == nil {
		return nil
	}
	return l.charge(r.Principal.TokenID(), &r.account, cost{ops: int64(len(finishes)), ends: int64(len(finishes)), finishes: finishes})
}

// chargeReads counts a call that reads n jobs.
func (l *Limits) chargeReads(ctx context.Context, n int) error {
	r := paying(ctx)
	if r == nil {
		return nil
	}
	return l.charge(r.Principal.TokenID(), &r.account, cost{ops: int64(n)})
}

// payer is the token by whose limits a reserve is counted. The zero value has none.
type payer struct {
	limits  *Limits
	id      string
	account *account
}

// payerOf returns the payer of a reserve: who gets the jobs, or else who calls.
func (l *Limits) payerOf(ctx context.Context, r *jobpb.Reserve) payer {
	if r.Principal != "" {
		return payer{l, auth.DecodePrincipal(r.Principal).TokenID(), nil}
	}
	if by := paying(ctx); by != nil {
		return payer{l, by.Principal.TokenID(), &by.account}
	}
	return payer{}
}

// reserve counts a reserve as one operation. It lowers how many jobs the reserve takes, each of
// which is one, to what the limit allows.
func (p payer) reserve(r *jobpb.Reserve) error {
	if p.id == "" {
		return nil
	}
	// A byte, so that it waits until a debt is paid.
	if err := p.charge(cost{ops: 1, bytes: 1}); err != nil {
		return err
	}
	of := limitsOf(p.limits.source.Auth(), p.id)
	if u := p.limits.usageOf(p.id); u != nil && r.Max > 1 {
		r.Max = 1 + u.more(of, p.limits.clock(), r.Max-1)
	}
	return nil
}

// got counts the jobs that a reserve has got: the first one was counted with it. Each may be ended.
func (p payer) got(jobs []*jobpb.Reserved) {
	if p.id == "" || len(jobs) == 0 {
		return
	}
	if u := p.limits.usageOf(p.id); u != nil && limitsOf(p.limits.source.Auth(), p.id) != nil {
		u.reserved(jobs, p.limits.clock())
	}
	_ = p.charge(cost{ops: int64(len(jobs) - 1), bytes: bodies(jobs), must: true})
}

func (p payer) charge(c cost) error {
	a := p.account
	if a == nil {
		a = &account{}
	}
	return p.limits.charge(p.id, a, c)
}

func bodies(jobs []*jobpb.Reserved) (n int64) {
	for _, j := range jobs {
		n += int64(len(j.Body))
	}
	return n
}
