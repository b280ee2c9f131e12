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
	if err := numberIn(x.r.URL.Query(), "if_revision", &given); err != nil || !given.Set {
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

func (s *server) getToken(x *call) error {
	t, err := find(x, x.pathToken, s.findToken)
	if err != nil {
		return err
	}
	x.json.success()
	x.json.token(t)
	x.json.endObject()
	return nil
}

func (s *server) tokens(x *call) error {
	page, full, err := findPage(x, func(ctx context.Context, after string, most int, stale bool) ([]*jobpb.Token, error) {
		a, err := s.Queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Tokens{Tokens: &jobpb.Page{After: after, Max: uint32(most)}}}, stale)
		return a.GetTokens(), err
	})
	if err != nil {
		return err
	}
	size := 0
	for _, t := range page {
		size += t.SizeVT()
	}
	next := ""
	if full || size > job.MaxTokenListBytes {
		next = page[len(page)-1].Id
	}
	answerPage(x, "tokens", page, x.json.token, next)
	return nil
}

// putToken handles PUT /v1/tokens/{id}: it makes a token, and only then responds with its text,
// or changes what one may do.
func (s *server) putToken(x *call) error {
	id, err := x.pathToken()
	if err != nil {
		return err
	}
	var q wire.TokenRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	put := &jobpb.PutToken{}
	if put.Token, err = q.Token(id, time.Now()); err != nil {
		return err
	}
	if put.IfRevision, err = x.queryRevision(); err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	present, err := s.lookToken(ctx, id, false)
	if err != nil {
		return err
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
func (s *server) newSecret(x *call, put *jobpb.PutToken) error {
	secret, err := auth.Generate(rand.Reader, put.Token.Id)
	if err != nil {
		return err
	}
	put.Token.Hash = secret.Hash()
	return s.applyToken(x, put, secret)
}

// applyToken puts the token and responds with it, and with its text if that is new.
func (s *server) applyToken(x *call, put *jobpb.PutToken, secret auth.Secret) error {
	r, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_PutToken{PutToken: put}})
	if err != nil {
		return err
	}
	if secret.ID() != "" && put.OverlapMs == 0 {
		x.status = http.StatusCreated
	}
	x.w.Header().Set("Cache-Control", "no-store")
	x.json.success()
	x.json.text("id", put.Token.Id)
	x.json.number("revision", r.GetDetails().GetAuthRevision())
	x.json.textUnlessEmpty("token", secret.Text())
	x.json.endObject()
	return nil
}

// defaultOverlap is for how long both texts of a token are accepted, in seconds.
const defaultOverlap = 3600

// rotateToken handles POST /v1/tokens/{id}/rotate.
func (s *server) rotateToken(x *call) error {
	id, err := x.pathToken()
	if err != nil {
		return err
	}
	var q wire.RotateRequest
	if err := x.decodeOptional(maxSmallRequest, &q); err != nil {
		return err
	}
	overlap, err := job.Millis("overlap", q.Overlap.Or(defaultOverlap), job.MaxTokenOverlap)
	if err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	present, err := s.findToken(ctx, id, false)
	if err != nil {
		return err
	}
	// The rules and all else stay.
	next := &jobpb.Token{Id: id, Rules: present.Rules, IdPrefix: present.IdPrefix, ExpiresMs: present.ExpiresMs, Limits: present.Limits, Description: present.Description}
	return s.newSecret(x, &jobpb.PutToken{Token: next, IfRevision: new(present.Revision), OverlapMs: overlap})
}

// deleteToken handles DELETE /v1/tokens/{id}.
func (s *server) deleteToken(x *call) error {
	id, err := x.pathToken()
	if err != nil {
		return err
	}
	revision, err := x.queryRevision()
	if err != nil {
		return err
	}
	op := &jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: id, IfRevision: revision}}}
	return s.apply(x, op, func(*jobpb.Result) {
		x.json.boolean("success", true)
		x.json.text("id", id)
	})
}

// token adds the fields of a token.
func (w *writer) token(t *jobpb.Token) {
	w.text("id", t.Id)
	w.number("revision", t.Revision)
	w.textUnlessEmpty("description", t.Description)
	w.rules("rules", t.Rules)
	w.textUnlessEmpty("id_prefix", t.IdPrefix)
	w.tokenLimits(t.Limits)
	w.timestamp("expires_at", t.ExpiresMs)
	w.timestamp("created_at", t.CreatedMs)
	w.timestamp("old_until", t.OldUntilMs)
}

// rules adds a list of rules.
func (w *writer) rules(name string, rules []*jobpb.Rule) {
	objects(w, name, rules, func(r *jobpb.Rule) {
		w.texts("topics", r.Topics)
		verbs := make([]string, len(r.Verbs))
		for i, v := range r.Verbs {
			verbs[i] = auth.VerbName(v)
		}
		w.texts("verbs", verbs)
	})
}
