package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"tarry/api/audit"
	"tarry/auth"
	"tarry/internal/tokenbucket"
	"tarry/job"
	"tarry/job/jobpb"
)

// ErrNoToken is returned for a request without a token.
var ErrNoToken = errors.New("there is no token")

// errTwoTokens is returned for a request that has more than one: which of them counts would
// depend on who looks.
var errTwoTokens = job.Errorf(job.CodeInvalid, "Authorization is given more than once; send one token").In("Authorization")

// SecretOf returns the token of a request: Authorization with Bearer TOKEN, or Basic with the
// token as the password, and with its id or nothing as the user.
func SecretOf(h http.Header) (auth.Secret, error) {
	given := h.Values("Authorization")
	switch {
	case len(given) == 0:
		return auth.Secret{}, ErrNoToken
	case len(given) > 1 || strings.Contains(given[0], ","):
		return auth.Secret{}, errTwoTokens
	}
	scheme, rest, _ := strings.Cut(given[0], " ")
	text := strings.TrimSpace(rest)
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return auth.Parse(text)
	case !strings.EqualFold(scheme, "Basic"):
		return auth.Secret{}, auth.ErrNotToken
	}
	pair, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return auth.Secret{}, auth.ErrNotToken
	}
	id, text, _ := strings.Cut(string(pair), ":")
	secret, err := auth.Parse(text)
	if err == nil && id != "" && id != secret.ID() {
		err = auth.ErrUnknown
	}
	return secret, err
}

// Identity tells whose a token is. A token that this node does not know may have been made on
// another node a moment ago, so the leader is asked before it is refused, but not often.
type Identity struct {
	source Source
	leader *leader

	mu      sync.Mutex
	unknown map[[sha256.Size]byte]time.Time // tokens that the leader does not know, and since when
	asked   *tokenbucket.Buckets            // by address
	all     tokenbucket.Bucket              // of all addresses together
}

// NewIdentity returns an identity by the state of source. leader returns the revision of the
// tokens that the leader has; it blocks.
func NewIdentity(source Source, leader func(context.Context) (uint64, error)) *Identity {
	return &Identity{
		source: source, leader: newLeader(source, leader),
		unknown: map[[sha256.Size]byte]time.Time{}, asked: tokenbucket.NewBuckets(askBurst, askEvery, maxAsked),
		all: tokenbucket.New(1/allEvery.Seconds(), allBurst, time.Now()),
	}
}

const (
	// unknownTime is for how long an unknown token is not asked for again. A token that is
	// made meanwhile is known when the log has brought it here, whatever this time is.
	unknownTime = 10 * time.Second
	// maxUnknown bounds the unknown tokens that are remembered, maxAsked the addresses.
	maxUnknown = 4096
	maxAsked   = 4096
	// askBurst is how many unknown tokens of one address are asked for at once, askEvery how
	// often one is after that.
	askBurst = 20
	askEvery = 500 * time.Millisecond
	// allBurst and allEvery are the same for all addresses together.
	allBurst = 200
	allEvery = 20 * time.Millisecond
	// askTime bounds asking, and waiting until this node has what the leader had.
	askTime = 5 * time.Second
)

// Of returns whose token it is. remote is the client's address. An error is auth.ErrUnknown,
// auth.ErrExpired, or that the leader could not be asked. It is not asked unless ask is set.
func (i *Identity) Of(ctx context.Context, secret auth.Secret, remote string, ask bool) (auth.Principal, error) {
	s := i.source.Auth()
	_, err := s.Authenticate(secret, now())
	if ask && errors.Is(err, auth.ErrUnknown) {
		err = i.askFor(ctx, [sha256.Size]byte(secret.Hash()), remote, func() error {
			_, err := i.source.Auth().Authenticate(secret, now())
			return err
		})
	}
	if err != nil {
		return auth.Principal{}, err
	}
	return auth.SecretPrincipal(secret), nil
}

// errAskedTooOften is returned for a token of which nobody knows whether it is valid.
var errAskedTooOften = job.NotApplied("the token is not known here, and this node has asked the leader for too many unknown ones to ask again now")

// askFor waits until this node has the tokens that the leader has now, and looks again. key is a
// digest of what is looked for. What the leader did not know a moment ago is not asked for.
func (i *Identity) askFor(ctx context.Context, key [sha256.Size]byte, remote string, look func() error) error {
	if i.isUnknown(key) {
		return auth.ErrUnknown
	}
	if !i.mayAsk(remote) {
		return errAskedTooOften
	}
	if err := i.leader.reached(ctx); err != nil {
		return job.NotApplied("the token is not known here: %w", err)
	}
	err := look()
	if errors.Is(err, auth.ErrUnknown) {
		i.remember(key)
	}
	return err
}

func (i *Identity) isUnknown(key [sha256.Size]byte) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	since, found := i.unknown[key]
	return found && time.Since(since) < unknownTime
}

// mayAsk reports whether the leader may be asked for an address, and counts it.
func (i *Identity) mayAsk(remote string) bool {
	at := time.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked.Take(audit.Network(remote), at) && i.all.Take(at)
}

func (i *Identity) remember(key [sha256.Size]byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.unknown) >= maxUnknown {
		clear(i.unknown)
	}
	i.unknown[key] = time.Now()
}

// Caller is who makes a request.
type Caller struct {
	Principal   auth.Principal
	Secret      auth.Secret // of its token; zero without one
	Certificate Certificate // by which it is known instead; zero without one
	Claimed     string      // the id in a token that is not accepted
}

// Shown is what a request shows of who makes it.
type Shown struct {
	Header      http.Header
	Certificate Certificate // of its connection
	Connection  *Connection // may be nil
	Remote      string      // the client's address
}

// Caller returns who makes a request by its header, or by the certificate of its connection. An
// error is for the client only in the mode that enforces, or where the verb admin is needed;
// denial is its reason for metrics. ask allows to ask the leader for a token that is not known
// here, for which the call waits.
func (i *Identity) Caller(ctx context.Context, s Shown, ask bool) (by Caller, denial auth.Denial, err error) {
	if i.source.Auth().Mode() == jobpb.AuthMode_AUTH_OFF && s.Certificate.TokenID == "" && len(s.Header.Values("Authorization")) == 0 {
		return Caller{}, auth.Allowed, nil
	}
	by, err = i.find(ctx, s, ask)
	switch {
	case err == nil:
		return by, auth.Allowed, nil
	case errors.Is(err, ErrNoToken):
		return Caller{}, auth.Allowed, nil
	}
	nobody := Caller{Claimed: cmp.Or(by.Secret.ID(), by.Certificate.TokenID)}
	switch {
	case errors.Is(err, auth.ErrExpired):
		return nobody, auth.ExpiredToken, Unauthorized()
	case job.CodeOf(err) == job.CodeInternal: // not one for the client
		return nobody, auth.UnknownToken, Unauthorized()
	}
	return nobody, auth.UnknownToken, err
}

// find returns who makes a request; ErrNoToken if it names no token.
func (i *Identity) find(ctx context.Context, s Shown, ask bool) (by Caller, err error) {
	if s.Certificate.TokenID != "" {
		if len(s.Header.Values("Authorization")) > 0 {
			return by, errTwoCredentials
		}
		by.Certificate = s.Certificate
		by.Principal, err = i.OfCertificate(ctx, s.Certificate, s.Remote, ask)
		return by, err
	}
	if by.Secret, err = s.Connection.secretOf(s.Header); err != nil {
		return by, err
	}
	by.Principal, err = i.Of(ctx, by.Secret, s.Remote, ask)
	return by, err
}

// CodeUnauthorized is the code of requests that need a token and have none that is valid.
const CodeUnauthorized job.Code = "unauthorized"

// Unauthorized is the error of a request that needs a token. It is the same for all of them, so
// that nobody learns which tokens there are.
func Unauthorized() error {
	return job.Errorf(CodeUnauthorized, "this needs a token that is known and has not ended; send it as Authorization: Bearer TOKEN (docs/tokens.md)")
}
