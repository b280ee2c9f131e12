package api

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"time"

	"tarry/api/wire"
	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

const (
	// BootstrapFile is the name of the file that proves that somebody can read a data directory.
	BootstrapFile = "bootstrap-secret"
	// ResetFile is the name of the file that proves that somebody can write to a data directory:
	// tarry auth reset makes it, with a nonce of one use.
	ResetFile = "auth-reset"
	// ResetTime is for how long a nonce is accepted: a forgotten one opens nothing.
	ResetTime = time.Hour
)

// AuthReset is the file ResetFile of a node. Its methods may be called from many goroutines.
type AuthReset interface {
	// Holds reports whether the file has the nonce, used or not, and was made a short time ago.
	Holds(nonce string) bool
	// Use marks the nonce in the file as used, so that it stays so after a crash. It reports
	// whether it was unused.
	Use(nonce string) (bool, error)
	// Undo marks a used nonce as unused: nothing was done with it.
	Undo(nonce string) error
}

// defaultFirstToken is the id of the first token, unless another one is asked for.
const defaultFirstToken = "root"

// bootstrap handles POST /v1/auth/bootstrap: it makes the first token, which may do everything,
// for who can read the data directory of this node, or again for who can write to it.
func (s *server) bootstrap(x *call, q *wire.BootstrapRequest) (r wire.TokenPut, err error) {
	if q.Secret.V == "" {
		return r, job.Invalid("secret", "is missing; it is in the file %s in the data directory of this node", BootstrapFile)
	}
	reset := s.AuthReset != nil && s.AuthReset.Holds(q.Secret.V)
	if !reset && (s.CheckBootstrap == nil || !s.CheckBootstrap(q.Secret.V)) {
		s.Access.Denied(x.r.Context(), auth.WrongProof, x.needs.Verbs(), "", false)
		return r, job.Errorf(job.CodeForbidden, "secret is not that of the file %s in the data directory of this node, nor that of %s there, which tarry auth reset makes and which is accepted for %v",
			BootstrapFile, ResetFile, ResetTime).In("secret")
	}
	id := q.ID.Or(defaultFirstToken)
	if err := job.CheckTokenID("id", id); err != nil {
		return r, err
	}
	x.who.Resource = "token " + id
	purpose := "tarry first token "
	if reset {
		purpose = "tarry first token again "
	}
	// The text follows from the proof, so a request whose reply was lost can be repeated: the
	// state machine takes an equal token again.
	text := hmac.New(sha256.New, []byte(q.Secret.V))
	text.Write([]byte(purpose + id))
	secret, err := auth.Generate(bytes.NewReader(text.Sum(nil)), id)
	if err != nil {
		return r, err
	}
	t := &jobpb.Token{Id: id, Description: "the first token", Rules: everything(), Hash: secret.Hash()}
	if reset {
		x.who.Resource += ", with the nonce of tarry auth reset"
		return s.bootstrapAgain(x, q.Secret.V, &jobpb.PutToken{Token: t, Bootstrap: true}, secret)
	}
	return s.applyToken(x, &jobpb.PutToken{Token: t, Bootstrap: true}, secret)
}

// bootstrapAgain makes a first token although there was one, if the nonce is unused.
func (s *server) bootstrapAgain(x *call, nonce string, put *jobpb.PutToken, secret auth.Secret) (r wire.TokenPut, err error) {
	put.Token.Description = "made after tarry auth reset"
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	present, err := s.freshToken(ctx, put.Token.Id)
	if err != nil {
		return r, err
	}
	// It is marked before it is used: a crash leaves a nonce that is lost rather than one that
	// can be used again.
	unused, err := s.AuthReset.Use(nonce)
	switch {
	case err != nil:
		return r, err
	case unused:
	case present != nil && bytes.Equal(present.Hash, put.Token.Hash):
		// the reply was lost
		x.status = http.StatusCreated
		x.w.Header().Set("Cache-Control", "no-store")
		return wire.TokenPut{ID: present.Id, Revision: present.Revision, Token: secret.Text()}, nil
	default:
		return r, job.Errorf(job.CodeConditionFailed, "the nonce of the file %s was used already; make another one with tarry auth reset", ResetFile)
	}
	put.IfRevision = new(present.GetRevision())
	r, err = s.applyToken(x, put, secret)
	switch code := job.CodeOf(err); {
	case err == nil:
		s.Logger.Warn("a token that may do everything was made with the nonce of tarry auth reset", "token", put.Token.Id, "remote", x.r.RemoteAddr)
	case code != job.CodeUnknown && code != job.CodeInternal: // nothing was done
		if undone := s.AuthReset.Undo(nonce); undone != nil {
			s.Logger.Warn("an unused nonce of tarry auth reset is lost; make another one", "error", undone)
		}
	}
	return r, err
}

// freshToken returns the token that the leader has now; nil: there is none with this id.
func (s *server) freshToken(ctx context.Context, id string) (*jobpb.Token, error) {
	if err := s.Access.Fresh(ctx); err != nil {
		return nil, err
	}
	if t := s.Access.State().Token(id); t != nil {
		return t.Token, nil
	}
	return nil, nil
}

// everything are the rules that allow all verbs.
func everything() []*jobpb.Rule {
	r, err := auth.ParseRule([]string{"*"}, auth.VerbNames())
	if err != nil {
		panic(err) // of names that the package gave
	}
	return []*jobpb.Rule{r}
}
