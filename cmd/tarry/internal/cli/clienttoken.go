package cli

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"tarry/client"
)

// ClientToken says which token a command sends. The token itself is never in the command
// line, which others on the machine can see.
type ClientToken struct {
	File     string
	OverHTTP bool
}

const (
	TokenFileEnv     = "TARRY_TOKEN_FILE"
	tokenOverHTTPEnv = "TARRY_TOKEN_OVER_HTTP"
)

func (t *ClientToken) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&t.File, "token-file", os.Getenv(TokenFileEnv), "`file` with the token to call nodes with (docs/tokens.md); also set by "+TokenFileEnv)
	flags.BoolVar(&t.OverHTTP, "token-over-http", os.Getenv(tokenOverHTTPEnv) == "true", "send the token without TLS to other machines, too; also set by "+tokenOverHTTPEnv+"=true")
}

// Options returns the client's options.
func (t *ClientToken) Options() []client.Option {
	var options []client.Option
	if t.File != "" {
		options = append(options, client.WithTokenFile(t.File))
	}
	if t.OverHTTP {
		options = append(options, client.WithTokenOverHTTP())
	}
	return options
}

// sign adds the token to a request to a node that the client has no call for, by the client's
// rules: never in plain text to another machine.
func (t *ClientToken) sign(q *http.Request) error {
	if t.File == "" {
		return nil
	}
	c, err := client.New([]string{q.URL.Scheme + "://" + q.URL.Host}, t.Options()...)
	if err != nil {
		return err
	}
	c.Close()
	text, err := os.ReadFile(t.File)
	if err != nil {
		return fmt.Errorf("the file of the token: %w", err)
	}
	q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(text)))
	return nil
}
