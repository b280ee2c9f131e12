package archive

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func TestALostReplyToAReplacementSaysHowToSeeWhatBecameOfIt(t *testing.T) {
	err := sayHowToSee(&client.Error{Code: client.CodeUnknown, Message: "the connection was lost", Unknown: true})
	require.Equal(t, cli.ExitUnknown, cli.ExitCode(err))
	require.Contains(t, cli.Explain(err), `the connection was lost; the whole cluster has either`)
	require.Contains(t, cli.Explain(err), `"tarry cluster events" and the counts show which`)
	for _, other := range []error{
		errors.New("other"), &client.Error{Code: client.CodeNotApplied, Message: "refused"}, &client.Error{Status: 504, Code: client.CodeUnknown, Message: "a node says so", Unknown: true},
	} {
		require.Equal(t, other, sayHowToSee(other))
	}
}
