package fsm

import (
	"bytes"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// putToken makes or replaces a token. An equal one changes nothing, so a request is safe to
// repeat.
func (x *tx) putToken(op *jobpb.PutToken, r *jobpb.Result) error {
	s, id := x.m.auth, op.Token.Id
	var old *jobpb.Token
	if t := s.Token(id); t != nil {
		old = t.Token
	}
	made := proto.CloneOf(op.Token)
	if len(made.Hash) == 0 {
		made.Hash = bytes.Clone(old.GetHash())
	}
	x.rotate(made, old, op.OverlapMs)
	made.CreatedMs, made.Revision = old.GetCreatedMs(), old.GetRevision()
	switch {
	case old != nil && proto.Equal(made, old):
		// Also of the first token: its reply may have been lost.
		r.Existing = true
		return x.authResult(old.Revision, r)
	case op.Bootstrap && s.Bootstrapped && op.IfRevision == nil:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "there was a first token already; a token with the verb admin makes others")
	case op.IfRevision != nil && *op.IfRevision != old.GetRevision():
		return x.refuse(r, jobpb.Code_CONDITION_FAILED,
			"token %q has revision %d, not %d; 0 stands for none", id, old.GetRevision(), *op.IfRevision)
	case len(made.Hash) == 0:
		return x.refuseInvalid(job.Invalid("hash", "is missing: token %q is new", id), r)
	case old == nil && s.Tokens() >= x.limits().MaxTokens:
		return x.refuse(r, jobpb.Code_TOO_MANY_TOKENS,
			"there are %d tokens already, which is the limit; delete those that have expired", s.Tokens())
	}
	if old == nil {
		made.CreatedMs = x.clock()
	}
	made.Revision = s.Revision + 1
	encoded, err := record.EncodeToken(made)
	if err != nil {
		return err
	}
	kept, err := record.DecodeToken(id, encoded) // made aliases the entry
	if err != nil {
		return err
	}
	changed := s.WithToken(kept.Revision, auth.NewToken(kept))
	if locksOut(s, changed) || op.Bootstrap && !changed.HasLastingAdmin() {
		return x.refuseLockOut(r)
	}
	x.setConfig(x.nameKey(record.SpaceToken, id), encoded)
	return x.useAuth(changed, kept.Revision, r)
}

// rotate lets the text before be accepted for some time more, if made has another.
func (x *tx) rotate(made, old *jobpb.Token, overlapMS int64) {
	switch {
	case old == nil:
	case bytes.Equal(made.Hash, old.Hash):
		made.OldHash, made.OldUntilMs = old.OldHash, old.OldUntilMs
	case overlapMS > 0:
		made.OldHash, made.OldUntilMs = old.Hash, x.clock()+overlapMS
	}
}

// deleteToken revokes a token.
func (x *tx) deleteToken(op *jobpb.DeleteToken, r *jobpb.Result) error {
	s := x.m.auth
	t := s.Token(op.Id)
	switch {
	case t == nil:
		return x.refuse(r, jobpb.Code_NOT_FOUND, "token %.40q does not exist", op.Id)
	case op.IfRevision != nil && *op.IfRevision != t.Revision:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "token %q has revision %d, not %d", op.Id, t.Revision, *op.IfRevision)
	}
	changed := s.WithoutToken(s.Revision+1, t.Id)
	if locksOut(s, changed) {
		return x.refuseLockOut(r)
	}
	x.setConfig(x.nameKey(record.SpaceToken, t.Id), nil)
	return x.useAuth(changed, changed.Revision, r)
}

// setAuth replaces the settings for all tokens. Equal ones change nothing.
func (x *tx) setAuth(op *jobpb.SetAuth, r *jobpb.Result) error {
	s := x.m.auth
	if op.IfRevision != nil && *op.IfRevision != s.Settings.Revision {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the settings of tokens have revision %d, not %d", s.Settings.Revision, *op.IfRevision)
	}
	made := proto.CloneOf(op.Settings)
	if made.Revision = s.Settings.Revision; proto.Equal(made, s.Settings) {
		r.Existing = true
		return x.authResult(made.Revision, r)
	}
	made.Revision = s.Revision + 1
	changed := s.WithSettings(made.Revision, made)
	if locksOut(s, changed) {
		return x.refuseLockOut(r)
	}
	return x.useAuth(changed, changed.Revision, r)
}

// locksOut reports whether a change would leave nobody who may change the tokens, or only
// until a token ends. Each mode needs the verb admin for that, and there is no second first
// token.
func locksOut(before, changed *auth.State) bool {
	return !changed.HasLastingAdmin() && (before.HasLastingAdmin() || changed.Mode() == jobpb.AuthMode_AUTH_ENFORCE)
}

func (x *tx) refuseLockOut(r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_CONDITION_FAILED,
		"there must be a token with the verb admin that does not expire, or nobody could make tokens and set the mode; make another one first")
}

// useAuth puts a state of tokens into force, for the operations after this one.
func (x *tx) useAuth(s *auth.State, revision uint64, r *jobpb.Result) error {
	encoded, err := record.EncodeAuth(s)
	if err != nil {
		return err
	}
	x.setConfig(record.KeyAuth, encoded)
	kept, err := record.DecodeAuth(encoded, nil) // the settings may alias the entry
	if err != nil {
		return err
	}
	x.m.auth, x.authChanged = s.WithSettings(s.Revision, kept.Settings), true
	return x.authResult(revision, r)
}

func (x *tx) authResult(revision uint64, r *jobpb.Result) error {
	if x.replies {
		r.Details = &jobpb.Details{AuthRevision: revision}
	}
	return nil
}

// Auth returns the tokens and their settings as of the last commit.
func (m *Machine) Auth() *auth.State { return m.authState.Load() }

// AuthChanged returns a channel that is closed when Auth may return another state. To miss
// no change, call it before Auth.
func (m *Machine) AuthChanged() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.authChanged
}

// publishAuth is called with m.mu held.
func (m *Machine) publishAuth() {
	m.authState.Store(m.memory.auth)
	if m.authChanged != nil {
		close(m.authChanged)
	}
	m.authChanged = make(chan struct{})
}

// Whether a principal may do an operation is decided here, when it is applied: ids, seqs and
// tokens of reservations name no topic, jobs move, and what follows a revocation in the log
// must not pass. An operation first needs the rights on the topics that it names, before it
// is done; then, where it finds a job (refs.go), those on the topic of the job.

// caller is the principal of the running operation.
type caller struct {
	principal auth.Principal
	grants    *auth.Grants
	denial    auth.Denial // why it may do nothing; Allowed: its grants decide
	onJob     auth.Verbs  // that the operation needs on the topic of the job that it names
	orOnJob   auth.Verbs  // that are enough instead; 0: none
	denied    *jobpb.Denied
}

// checked does an operation if its principal may do it.
func (x *tx) checked(op *jobpb.Op, r *jobpb.Result) error {
	row := rowOf(op)
	if row == nil {
		return errUnknown(op)
	}
	text := op.Principal
	if reserve := op.GetReserve(); reserve != nil {
		text = reserve.Principal
	}
	p := auth.DecodePrincipal(text)
	if oplog.ByNode(op) || oplog.NeedsAdmin(op) || p.IsSystem() {
		return row.do(x, op, r)
	}
	return x.as(p, oplog.OnJob(op), r, func() error {
		if !x.mayNeeded(op, r) {
			return nil
		}
		if row.may != nil {
			if ok, err := row.may(x, op, r); !ok || err != nil {
				return err
			}
		}
		return row.do(x, op, r)
	})
}

// errUnknown is the error of an operation that this release does not know. Going on would make the
// state differ from that of the nodes that do.
func errUnknown(op *jobpb.Op) error {
	return fmt.Errorf("this release does not know the operation %T: it was written by a newer release; upgrade this node", op.Kind)
}

// mayNeeded reports whether the caller has the verbs that an operation needs on the topics that it
// names; if not, it refuses the operation.
func (x *tx) mayNeeded(op *jobpb.Op, r *jobpb.Result) bool {
	return oplog.Needs(op, func(verbs auth.Verbs, topic string) bool { return x.may(verbs, topic, r) })
}

// asAdmin makes an operation need the verb admin, in every mode. The first token needs none,
// nor does one after tarry auth reset: the node that proposes it has seen a proof of who may
// make it.
func asAdmin(o operation) operation {
	do := o.do
	o.do = func(x *tx, op *jobpb.Op, r *jobpb.Result) error {
		p := auth.DecodePrincipal(op.Principal)
		if p.IsSystem() || op.GetPutToken().GetBootstrap() {
			return do(x, op, r)
		}
		return x.as(p, 0, r, func() error {
			missing, why := x.caller.lacks(auth.Admin, "")
			if missing == 0 {
				return do(x, op, r)
			}
			x.deny(missing, "", why)
			x.forbid(missing, "", why, r)
			return nil
		})
	}
	return o
}

// as calls do with a principal as the caller.
func (x *tx) as(p auth.Principal, onJob auth.Verbs, r *jobpb.Result, do func() error) error {
	c := &x.callers
	*c = caller{principal: p, onJob: onJob}
	c.grants, c.denial = x.m.auth.GrantsOf(p, x.clock())
	x.caller = c
	err := do()
	x.caller = nil
	if c.denied != nil && x.replies {
		if r.Details == nil {
			r.Details = new(jobpb.Details)
		}
		r.Details.Denied = c.denied
	}
	return err
}

// lacks returns which of verbs the caller does not have on a topic, and why.
func (c *caller) lacks(verbs auth.Verbs, topic string) (auth.Verbs, auth.Denial) {
	if c.denial != auth.Allowed {
		return verbs, c.denial
	}
	missing := c.grants.Missing(verbs, topic)
	switch {
	case missing == 0:
		return 0, auth.Allowed
	case c.principal.IsAnonymous():
		return missing, auth.NoToken
	}
	return missing, auth.NotGranted
}

// deny records what the caller lacks, and reports whether the operation must be refused.
func (x *tx) deny(missing auth.Verbs, topic string, why auth.Denial) bool {
	if x.replies && x.caller.denied == nil {
		x.caller.denied = &jobpb.Denied{Verbs: uint32(missing), Topic: strings.Clone(topic), Reason: uint32(why)}
	}
	return x.m.auth.Mode() == jobpb.AuthMode_AUTH_ENFORCE
}

// may reports whether the caller may do verbs on a topic that the operation names; if not,
// it refuses the operation.
func (x *tx) may(verbs auth.Verbs, topic string, r *jobpb.Result) bool {
	missing, why := x.caller.lacks(verbs, topic)
	if missing == 0 || !x.deny(missing, topic, why) {
		return true
	}
	x.forbid(missing, topic, why, r)
	return false
}

func (x *tx) forbid(missing auth.Verbs, topic string, why auth.Denial, r *jobpb.Result) {
	if why == auth.UnknownToken && x.m.followsConfig() { // the node that proposed it knows the token
		_ = x.refuse(r, jobpb.Code_NOT_APPLIED, "the token is new or was revoked, and this shard does not know which yet; try again")
		return
	}
	_ = x.refuse(r, jobpb.Code_FORBIDDEN, "%s", auth.Forbidden(why, missing, topic))
}

// knows reports whether the caller may learn what is in a topic.
func (x *tx) knows(topic string) bool {
	missing, _ := x.caller.lacks(auth.Read, topic)
	return missing == 0
}

// mayTouch reports whether the caller may do the operation to a job of a topic. If not, it
// refuses the operation: as if there were no such job, unless the caller may read it.
func (x *tx) mayTouch(t *topic, ref *jobpb.Ref, r *jobpb.Result) bool {
	if x.caller == nil {
		return true
	}
	missing, why := x.caller.lacks(x.caller.onJob, t.name)
	if instead := x.caller.orOnJob; missing != 0 && instead != 0 {
		if less, _ := x.caller.lacks(instead, t.name); less == 0 {
			return true
		}
	}
	switch {
	case missing == 0 || !x.deny(missing, t.name, why):
		return true
	case x.knows(t.name):
		x.forbid(missing, t.name, why, r)
	default:
		_ = x.refuseMissing(ref, r)
	}
	return false
}

// mayFindID reports whether the add of the caller may learn of the job that has its id, whose
// topic is t. Who may not read that learns only that the id is taken.
func (x *tx) mayFindID(op *jobpb.Add, t *topic, r *jobpb.Result) bool {
	return x.mayMeet(auth.Read, op, t, r)
}

// mayReplace reports whether the add of the caller may replace or postpone a job of t. Who may
// add to two topics may not by that take jobs out of either.
func (x *tx) mayReplace(op *jobpb.Add, t *topic, r *jobpb.Result) bool {
	verb := auth.Manage
	if x.m.meta.Version < entryVersion {
		verb = auth.Add
	}
	return x.mayMeet(verb, op, t, r)
}

// mayMeet reports whether the add of the caller has a right on the topic of the job with its
// id, if that is another one.
func (x *tx) mayMeet(verb auth.Verbs, op *jobpb.Add, t *topic, r *jobpb.Result) bool {
	if x.caller == nil || t.name == op.Topic {
		return true
	}
	missing, why := x.caller.lacks(verb, t.name)
	switch {
	case missing == 0 || !x.deny(missing, t.name, why):
		return true
	case x.knows(t.name):
		x.forbid(missing, t.name, why, r)
	default:
		_ = x.refuse(r, jobpb.Code_ID_CONFLICT, "id %.40q is taken", op.Id)
	}
	return false
}

// entryVersion is the cluster version from which on a move, a kick and a run that is started
// by hand need what an add of the job needs, and a replacement in another topic what a delete
// needs. Before, they need the verb add alone, because nodes of a release that decides so
// apply the same log.
const entryVersion = 2

// mayEnter reports whether the caller may let jobs that an operation finds enter a topic:
// such with a push_url, if pushURL. If not, it refuses the operation.
func (x *tx) mayEnter(topic string, pushURL bool, r *jobpb.Result) bool {
	return x.caller == nil || !pushURL || x.m.meta.Version < entryVersion || x.may(oplog.AddVerbs(pushURL), topic, r)
}

// mayUseID refuses an id that does not begin with the prefix of the caller's token.
func (x *tx) mayUseID(id, topic string, r *jobpb.Result) bool {
	why := x.m.auth.CheckID(x.caller.principal, id)
	if why == auth.Allowed || !x.deny(auth.Add, topic, why) {
		return true
	}
	x.forbid(auth.Add, topic, why, r)
	return false
}

// mayUseIDs is mayUseID for the jobs that an operation brings.
func mayUseIDs(x *tx, op *jobpb.Op, r *jobpb.Result) (bool, error) {
	for _, add := range oplog.AddsOf(op) {
		if !x.mayUseID(add.Id, add.Topic, r) {
			return false, nil
		}
	}
	return true, nil
}

// mayDelete lets a consumer delete what it holds: with the token of the reservation a delete
// does no more than a finish.
func (x *tx) mayDelete(op *jobpb.Op, _ *jobpb.Result) (bool, error) {
	if op.GetDelete().GetRef().GetGeneration() != 0 {
		x.caller.orOnJob = auth.Consume
	}
	return true, nil
}

// maySetTopic also needs the verb push for another target. That takes jobs out of the
// network; none keeps them in it.
func (x *tx) maySetTopic(op *jobpb.Op, r *jobpb.Result) (bool, error) {
	k := op.GetSetTopic()
	push := k.Settings.GetPush()
	return push == nil || proto.Equal(push, x.m.settings[k.Topic].GetPush()) || x.may(auth.Push, k.Topic, r), nil
}

// mayPutSchedule also needs the rights on the topic that the schedule has.
func (x *tx) mayPutSchedule(op *jobpb.Op, r *jobpb.Result) (bool, error) {
	k := op.GetPutSchedule()
	if ok, err := x.mayUseSchedule(k.Name, auth.Manage, r); !ok || err != nil || k.Schedule == nil {
		return ok, err
	}
	return x.mayUseID(k.Name, k.Schedule.Job.GetTopic(), r), nil
}

func (x *tx) mayDeleteSchedule(op *jobpb.Op, r *jobpb.Result) (bool, error) {
	return x.mayUseSchedule(op.GetDeleteSchedule().GetName(), auth.Manage, r)
}

// mayUseSchedule reports whether the caller may do verbs on the topic of a schedule. If not,
// it refuses the operation: as if there were no such schedule, unless the caller may read it.
func (x *tx) mayUseSchedule(name string, verbs auth.Verbs, r *jobpb.Result) (bool, error) {
	s, err := x.schedule(name)
	if s == nil || err != nil {
		return err == nil, err // the operation itself refuses what does not exist
	}
	return x.mayUse(s, verbs, r)
}

func (x *tx) mayUse(s *schedule, verbs auth.Verbs, r *jobpb.Result) (bool, error) {
	topic := s.def.GetJob().GetTopic()
	missing, why := x.caller.lacks(verbs, topic)
	switch {
	case missing == 0 || !x.deny(missing, topic, why):
		return true, nil
	case x.knows(topic):
		x.forbid(missing, topic, why, r)
		return false, nil
	}
	return false, x.refuseSchedule(s.name, r)
}

// mayFireSchedule also needs what an add of the run's job needs.
func (x *tx) mayFireSchedule(op *jobpb.Op, r *jobpb.Result) (bool, error) {
	s, err := x.schedule(op.GetFireSchedule().GetName())
	if s == nil || err != nil {
		return err == nil, err // the operation itself refuses what does not exist
	}
	verbs := auth.Manage | auth.Add
	if x.m.meta.Version >= entryVersion {
		verbs |= oplog.AddVerbs(s.def.GetJob().GetOptions().GetPushUrl() != "")
	}
	return x.mayUse(s, verbs, r)
}

// reserveAhead does a Reserve of an AdvanceAt, if its principal may. The leader whose entry it came in
// has the time atMS then.
func (x *tx) reserveAhead(op *jobpb.Reserve, term uint64, atMS int64, r *jobpb.Result) error {
	p := auth.DecodePrincipal(op.Principal)
	if x.m.followsConfig() && !p.IsSystem() && x.refuseOutOfTouch(term, atMS, r) {
		return nil
	}
	if x.m.auth.Mode() == jobpb.AuthMode_AUTH_OFF || p.IsSystem() {
		return x.reserve(op, r)
	}
	return x.as(p, 0, r, func() error {
		if !x.mayNeeded(&jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: op}}, r) {
			return nil
		}
		return x.reserve(op, r)
	})
}
