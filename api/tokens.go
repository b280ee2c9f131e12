package api

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"tarry/api/wire"
	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// pathToken returns the id of the token in the path.
func (x *call) pathToken() (string, error) {
	id, err := x.pathValue("id")
	if err != nil {
		return "", err
	}
	return id, job.CheckTokenID("id", id)
}

// queryRevision returns if_revision of the query; nil: there is none.
func (x *call) queryRevision() (*uint64, error) {
	var given wire.Opt[int64]
	if err := wire.NumberIn(x.r.URL.Query(), "if_revision", &given); err != nil || !given.Set {
		return nil, err
	}
	if given.V < 0 {
		return nil, job.Invalid("if_revision", "is %d; it must be 0, for none, or more", given.V)
	}
	return new(uint64(given.V)), nil
}

// findToken reads a token; not_found if there is none.
func (s *server) findToken(ctx context.Context, id string, stale bool) (*jobpb.Token, error) {
	t, err := s.lookToken(ctx, id, stale)
	if err == nil && t == nil {
		err = job.Errorf(job.CodeNotFound, "there is no token with the id %.40q", id)
	}
	return t, err
}

// lookToken reads a token; nil: there is none.
func (s *server) lookToken(ctx context.Context, id string, stale bool) (*jobpb.Token, error) {
	a, err := s.Queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Token{Token: id}}, stale)
	if err != nil || len(a.GetTokens()) == 0 {
		return nil, err
	}
	return a.Tokens[0], nil
}

func (s *server) getToken(x *call) (r wire.TokenReply, err error) {
	t, err := find(x, x.pathToken, s.findToken)
	if err == nil {
		r.Token = tokenShown(t)
	}
	return r, err
}

func (s *server) tokens(x *call) (r wire.TokenPage, err error) {
	page, full, err := findPage(x, func(ctx context.Context, after string, most int, stale bool) ([]*jobpb.Token, error) {
		a, err := s.Queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Tokens{Tokens: &jobpb.Page{After: after, Max: uint32(most)}}}, stale)
		return a.GetTokens(), err
	})
	if err != nil {
		return r, err
	}
	size := 0
	for _, t := range page {
		size += t.SizeVT()
	}
	if full || size > job.MaxTokenListBytes {
		r.Next = page[len(page)-1].Id
	}
	r.Tokens = each(page, tokenShown)
	return r, nil
}

// putToken handles PUT /v1/tokens/{id}: it makes a token, and only then responds with its text,
// or changes what one may do.
func (s *server) putToken(x *call, q *wire.TokenRequest) (r wire.TokenPut, err error) {
	id, err := x.pathToken()
	if err != nil {
		return r, err
	}
	put := &jobpb.PutToken{}
	if put.Token, err = q.Token(id, time.Now()); err != nil {
		return r, err
	}
	if put.IfRevision, err = x.queryRevision(); err != nil {
		return r, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	present, err := s.lookToken(ctx, id, false)
	if err != nil {
		return r, err
	}
	if put.IfRevision == nil {
		put.IfRevision = new(present.GetRevision()) // 0 if it is to be made
	}
	if present != nil {
		return s.applyToken(x, put, auth.Secret{})
	}
	return s.newSecret(x, put)
}

// newSecret gives the token a text, which the response shows.
func (s *server) newSecret(x *call, put *jobpb.PutToken) (r wire.TokenPut, err error) {
	secret, err := auth.Generate(rand.Reader, put.Token.Id)
	if err != nil {
		return r, err
	}
	put.Token.Hash = secret.Hash()
	return s.applyToken(x, put, secret)
}

// applyToken puts the token and responds with it, and with its text if that is new.
func (s *server) applyToken(x *call, put *jobpb.PutToken, secret auth.Secret) (wire.TokenPut, error) {
	r, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_PutToken{PutToken: put}})
	if err != nil {
		return wire.TokenPut{}, err
	}
	if secret.ID() != "" && put.OverlapMs == 0 {
		x.status = http.StatusCreated
	}
	x.w.Header().Set("Cache-Control", "no-store")
	return wire.TokenPut{ID: put.Token.Id, Revision: r.GetDetails().GetAuthRevision(), Token: secret.Text()}, nil
}

// defaultOverlap is for how long both texts of a token are accepted, in seconds.
const defaultOverlap = 3600

// rotateToken handles POST /v1/tokens/{id}/rotate.
func (s *server) rotateToken(x *call, q *wire.RotateRequest) (r wire.TokenPut, err error) {
	id, err := x.pathToken()
	if err != nil {
		return r, err
	}
	overlap, err := job.Millis("overlap", q.Overlap.Or(defaultOverlap), job.MaxTokenOverlap)
	if err != nil {
		return r, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	present, err := s.findToken(ctx, id, false)
	if err != nil {
		return r, err
	}
	// The rules and all else stay.
	next := &jobpb.Token{Id: id, Rules: present.Rules, IdPrefix: present.IdPrefix, ExpiresMs: present.ExpiresMs, Limits: present.Limits, Description: present.Description}
	return s.newSecret(x, &jobpb.PutToken{Token: next, IfRevision: new(present.Revision), OverlapMs: overlap})
}

// deleteToken handles DELETE /v1/tokens/{id}.
func (s *server) deleteToken(x *call) (r wire.TokenDeleted, err error) {
	if r.ID, err = x.pathToken(); err != nil {
		return r, err
	}
	revision, err := x.queryRevision()
	if err != nil {
		return r, err
	}
	_, err = s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: r.ID, IfRevision: revision}}})
	return r, err
}

func tokenShown(t *jobpb.Token) wire.Token {
	return wire.Token{
		ID: t.Id, Revision: t.Revision, Description: t.Description, Rules: rulesShown(t.Rules), IDPrefix: t.IdPrefix, Limits: limitsShown(t.Limits),
		ExpiresAt: wire.Time(t.ExpiresMs), CreatedAt: wire.Time(t.CreatedMs), OldUntil: wire.Time(t.OldUntilMs),
	}
}

func limitsShown(l *jobpb.TokenLimits) wire.TokenLimits {
	return wire.TokenLimits{
		Rate: float64(l.GetRateMilli()) / 1000, Connections: uint64(l.GetConnections()), Waiters: uint64(l.GetWaiters()), Bytes: l.GetBytes(),
	}
}

func rulesShown(rules []*jobpb.Rule) []wire.Rule {
	return each(rules, func(r *jobpb.Rule) wire.Rule { return wire.Rule{Topics: r.Topics, Verbs: each(r.Verbs, auth.VerbName)} })
}

// whoami handles GET /v1/whoami: who makes the call, and what that may do.
func (s *server) whoami(x *call) (wire.WhoAmI, error) {
	state := s.Access.State()
	r := wire.WhoAmI{Mode: wire.ModeNames[state.Mode()], Rules: rulesShown(state.Settings.Anonymous)}
	if t := state.Token(x.who.Principal.TokenID()); t != nil {
		r.ID, r.Description, r.Rules, r.IDPrefix = t.Id, t.Description, rulesShown(t.Rules), t.IdPrefix
		r.Limits, r.ExpiresAt = limitsShown(t.Limits), wire.Time(t.ExpiresMs)
	}
	return r, nil
}

func (s *server) getAuth(x *call) (r wire.Auth, err error) {
	info, err := s.readAuth(x)
	settings := info.GetSettings()
	return wire.Auth{
		Mode: wire.ModeNames[settings.GetMode()], Anonymous: rulesShown(settings.GetAnonymous()), Revision: settings.GetRevision(),
		Tokens: uint64(info.GetTokens()), Bootstrapped: info.GetBootstrapped(),
	}, err
}

func (s *server) readAuth(x *call) (*jobpb.AuthInfo, error) {
	stale, err := x.stale()
	if err != nil {
		return nil, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	a, err := s.Queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Auth{Auth: &jobpb.Empty{}}}, stale)
	return a.GetAuth(), err
}

// putAuth handles PUT /v1/auth.
func (s *server) putAuth(x *call, q *wire.AuthRequest) (r wire.AuthPut, err error) {
	revision, err := x.queryRevision()
	if err != nil {
		return r, err
	}
	if !q.Mode.Set {
		return r, job.Invalid("mode", "is missing; it takes off, report or enforce")
	}
	mode, err := wire.WordOf("mode", q.Mode, wire.ModeNames)
	if err != nil {
		return r, err
	}
	settings := &jobpb.AuthSettings{Mode: jobpb.AuthMode(mode)}
	if settings.Anonymous, err = wire.RulesOf("anonymous", q.Anonymous.V); err != nil {
		return r, err
	}
	if err := job.CheckAuthSettings(settings); err != nil {
		return r, err
	}
	done, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_SetAuth{SetAuth: &jobpb.SetAuth{Settings: settings, IfRevision: revision}}})
	return wire.AuthPut{Mode: q.Mode.V, Revision: done.GetDetails().GetAuthRevision()}, err
}
