package access

import (
	"context"

	"tarry/auth"
	"tarry/job/jobpb"
)

// account is what a call has used of the limits of its token.
type account struct {
	usage *usage // nil: Queue does not count what the call does
	paid  int64  // operations that were counted when the call began
	bytes int64  // of its body that are not counted yet
	// crowded is set if the call may only end or prolong reservations, because its connection is
	// one too many.
	crowded bool
}

// Begin counts a call on a connection, of which nil is none. later is set for a call that may end
// or prolong reservations: Queue counts what it does when that is known. Any other is one operation
// now, and is refused if the token has no more.
func (l *Limits) Begin(r *Request, c *Connection, later bool) error {
	id, a := r.Principal.TokenID(), &r.account
	if a.usage = l.usageOf(id); a.usage == nil {
		return nil
	}
	if c != nil {
		if err := l.join(c, a.usage, id, later); err != nil {
			if a.crowded = true; !later {
				return err
			}
		}
	}
	if later {
		return nil
	}
	if err := l.charge(id, a, 1, 0, false); err != nil {
		return err
	}
	a.paid = 1
	return nil
}

// Crowded reports whether the connection of a call is one too many, so that it is to be closed.
func (r *Request) Crowded() bool { return r != nil && r.account.crowded }

// Received counts the body of a call, whose length is known before it is read or not, and refuses
// it if it was not begun as one that is counted later.
func (l *Limits) Received(r *Request, bytes int64) error {
	if r == nil || r.account.usage == nil {
		return nil
	}
	r.account.bytes += bytes
	if r.account.paid == 0 {
		return nil
	}
	return l.charge(r.Principal.TokenID(), &r.account, 0, 0, false)
}

// Charge counts operations of a token, and bytes of bodies. Unless must is set it refuses, and
// counts nothing, what is above a limit.
func (l *Limits) Charge(id string, ops, bytes int64, must bool) error {
	return l.charge(id, &account{}, ops, bytes, must)
}

// charge is Charge for a call, of which operations may be paid, and with the bytes of its body.
func (l *Limits) charge(id string, a *account, ops, bytes int64, must bool) error {
	s := l.source.Auth()
	of := limitsOf(s, id)
	if of == nil {
		return nil
	}
	if a.crowded && !must {
		return l.exceeded(s, id, limitConnections, 0)
	}
	u := a.usage
	if u == nil {
		if u = l.usageOf(id); u == nil {
			return nil
		}
	}
	need := max(ops, a.paid) // nothing that is paid is given back, unless it is refused
	limit, wait := u.take(of, l.clock(), a.paid, need, a.bytes+bytes, must)
	a.bytes = 0
	if limit == "" {
		a.paid = need - ops
		return nil
	}
	a.paid = 0
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
	n, must := int64(0), true
	for _, op := range ops {
		n += cost(op)
		must = must && keeps(op)
	}
	return l.charge(r.Principal.TokenID(), &r.account, n, 0, must)
}

// cost is how many operations of a token's limit an operation is.
func cost(op *jobpb.Op) int64 {
	k, is := op.Kind.(*jobpb.Op_AtomicAdd)
	if !is {
		return 1
	}
	n := int64(len(k.AtomicAdd.GetAdds()))
	if k.AtomicAdd.GetFinish() != nil {
		n++
	}
	return n
}

// keeps reports whether an operation ends or prolongs a reservation, which is never refused.
func keeps(op *jobpb.Op) bool {
	switch k := op.Kind.(type) {
	case *jobpb.Op_Finish, *jobpb.Op_Release, *jobpb.Op_Touch, *jobpb.Op_Bury:
		return true
	case *jobpb.Op_AtomicAdd:
		return k.AtomicAdd.GetFinish() != nil
	case *jobpb.Op_Delete: // as older clients finish
		return k.Delete.GetRef().GetGeneration() != 0
	}
	return false
}

// chargeFinishes counts n finishes of a call.
func (l *Limits) chargeFinishes(ctx context.Context, n int) {
	if r := paying(ctx); r != nil {
		_ = l.charge(r.Principal.TokenID(), &r.account, int64(n), 0, true)
	}
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
	if err := p.charge(1, 1, false); err != nil {
		return err
	}
	of := limitsOf(p.limits.source.Auth(), p.id)
	if u := p.limits.usageOf(p.id); u != nil && r.Max > 1 {
		r.Max = 1 + u.more(of, p.limits.clock(), r.Max-1)
	}
	return nil
}

// got counts the jobs that a reserve has got: the first one was counted with it.
func (p payer) got(jobs []*jobpb.Reserved) {
	if p.id != "" && len(jobs) > 0 {
		_ = p.charge(int64(len(jobs)-1), bodies(jobs), true)
	}
}

func (p payer) charge(ops, bytes int64, must bool) error {
	a := p.account
	if a == nil {
		a = &account{}
	}
	return p.limits.charge(p.id, a, ops, bytes, must)
}

func bodies(jobs []*jobpb.Reserved) (n int64) {
	for _, j := range jobs {
		n += int64(len(j.Body))
	}
	return n
}
