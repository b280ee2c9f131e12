package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, addrs ...string) *client.Client {
	t.Helper()
	c, err := client.New(addrs)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}
