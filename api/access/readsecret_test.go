package access

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
)

func TestAConnectionReadsATokenOnce(t *testing.T) {
	header := func(values ...string) http.Header { return http.Header{"Authorization": values} }
	first, second := secretFor(t, "first"), secretFor(t, "second")
	same := header("Bearer " + first.Text())
	c := new(Connection)
	got, err := c.secretOf(same)
	require.NoError(t, err)
	require.Equal(t, first, got)
	require.Zero(t, testing.AllocsPerRun(100, func() { got, err = c.secretOf(same) }))
	require.NoError(t, err)
	require.Equal(t, first, got)

	got, err = c.secretOf(header("Bearer " + second.Text()))
	require.NoError(t, err)
	require.Equal(t, second, got, "another client of the same connection")
	_, err = c.secretOf(header("Bearer " + second.Text()[:len(second.Text())-1] + "!"))
	require.ErrorIs(t, err, auth.ErrMistyped)
	_, err = c.secretOf(header("Bearer "+second.Text(), "Bearer "+second.Text()))
	require.ErrorIs(t, err, errTwoTokens)
	_, err = c.secretOf(http.Header{})
	require.ErrorIs(t, err, ErrNoToken)

	got, err = (*Connection)(nil).secretOf(same)
	require.NoError(t, err)
	require.Equal(t, first, got)
}

func TestARequestIsInItsContext(t *testing.T) {
	r := &Request{Principal: auth.TokenPrincipal("worker")}
	ctx := NewContext(auth.NewContext(t.Context(), auth.System()), r)
	require.Same(t, r, ctx.Value(requestKey{}))
	require.Equal(t, r.Principal, auth.FromContext(ctx))
	require.Nil(t, ctx.Value("another key"))
	require.True(t, auth.FromContext(NewContext(auth.NewContext(t.Context(), auth.System()), &Request{})).IsAnonymous(), "nobody replaces the system")
}
