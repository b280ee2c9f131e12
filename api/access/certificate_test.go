package access

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/job"
)

func certificateFor(id string) Certificate { return CertificateOf(id, time.Now().Add(time.Hour)) }

func TestACertificateStandsForItsToken(t *testing.T) {
	source := newChanging(withToken(t, enforced(), "shop", "mail", "add"))
	i := NewIdentity(source, func(context.Context) (uint64, error) { return source.Auth().Revision, nil })
	caller := func(c Certificate, h http.Header) (Caller, auth.Denial, error) {
		return i.Caller(t.Context(), Shown{Header: h, Certificate: c, Remote: "10.0.0.1:5"}, true)
	}
	by, _, err := caller(certificateFor("shop"), nil)
	require.NoError(t, err)
	require.Equal(t, "shop", by.Principal.TokenID())
	require.Empty(t, by.Secret.ID())
	by, _, err = caller(CertificateOf("", time.Time{}), nil)
	require.NoError(t, err)
	require.True(t, by.Principal.IsAnonymous())
	require.Zero(t, by.Certificate)

	with := http.Header{"Authorization": {"Bearer " + secretFor(t, "shop").Text()}}
	_, _, err = caller(certificateFor("shop"), with)
	require.ErrorContains(t, err, "send one of them", "also of the same token")
	require.Equal(t, job.CodeInvalid, job.CodeOf(err))

	_, denial, err := caller(certificateFor("nobody"), nil)
	require.Equal(t, CodeUnauthorized, job.CodeOf(err))
	require.Equal(t, auth.UnknownToken, denial)
	_, denial, err = caller(CertificateOf("shop", time.Now().Add(-time.Second)), nil)
	require.Equal(t, CodeUnauthorized, job.CodeOf(err))
	require.Equal(t, auth.ExpiredToken, denial)
	source.set(source.Auth().WithoutToken(source.Auth().Revision+1, "shop"))
	_, denial, err = caller(certificateFor("shop"), nil)
	require.Equal(t, CodeUnauthorized, job.CodeOf(err))
	require.Equal(t, auth.UnknownToken, denial)
}

func TestTheTokenOfACertificateIsAskedForAtTheLeader(t *testing.T) {
	source := newChanging(enforced())
	ahead := withToken(t, source.Auth(), "new", "mail", "add")
	asked := 0
	var leads error
	i := NewIdentity(source, func(context.Context) (uint64, error) {
		if asked++; leads != nil {
			return 0, leads
		}
		go source.set(ahead)
		return ahead.Revision, nil
	})
	of := func(id string, ask bool) (auth.Principal, error) {
		return i.OfCertificate(t.Context(), certificateFor(id), "10.0.0.1:5", ask)
	}
	_, err := of("new", false)
	require.ErrorIs(t, err, auth.ErrUnknown)
	p, err := of("new", true)
	require.NoError(t, err)
	require.Equal(t, "new", p.TokenID())
	require.Equal(t, p, certificateFor("new").Principal(ahead))
	require.True(t, certificateFor("new").Principal(enforced()).IsAnonymous())
	for range 5 {
		_, err = of("nobody", true)
		require.ErrorIs(t, err, auth.ErrUnknown)
	}
	require.Equal(t, 2, asked)
	leads = job.NotApplied("there is no leader")
	_, err = of("other", true)
	require.Equal(t, job.CodeNotApplied, job.CodeOf(err))
}

// What waits ends with the token, or with the certificate.
func TestWhatWaitsEndsWithTheCertificate(t *testing.T) {
	source := newChanging(withToken(t, enforced(), "worker", "mail", "consume"))
	c := Open(Options{Source: source})
	defer c.Close()
	waits := func(cert Certificate) context.Context {
		r := &Request{Principal: auth.TokenPrincipal("worker"), Certificate: cert}
		ctx, stop := c.WhileAllowed(NewContext(t.Context(), r), 0, nil)
		t.Cleanup(stop)
		return ctx
	}
	long, brief := waits(certificateFor("worker")), waits(CertificateOf("worker", time.Now().Add(50*time.Millisecond)))
	<-brief.Done()
	require.True(t, Revoked(brief))
	require.NoError(t, long.Err())
	source.set(source.Auth().WithoutToken(source.Auth().Revision+1, "worker"))
	<-long.Done()
	require.True(t, Revoked(long))
}
