package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"tarry/client"
)

// clientToken says which token a command sends. The token itself is never in the command
// line, which others on the machine can see.
type clientToken struct {
	file     string
	overHTTP bool
}

const (
	tokenFileEnv     = "TARRY_TOKEN_FILE"
	tokenOverHTTPEnv = "TARRY_TOKEN_OVER_HTTP"
)

func (t *clientToken) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&t.file, "token-file", os.Getenv(tokenFileEnv), "`file` with the token to call nodes with (docs/tokens.md); also set by "+tokenFileEnv)
	flags.BoolVar(&t.overHTTP, "token-over-http", os.Getenv(tokenOverHTTPEnv) == "true", "send the token without TLS to other machines, too; also set by "+tokenOverHTTPEnv+"=true")
}

// options returns the client's options.
func (t *clientToken) options() []client.Option {
	var options []client.Option
	if t.file != "" {
		options = append(options, client.WithTokenFile(t.file))
	}
	if t.overHTTP {
		options = append(options, client.WithTokenOverHTTP())
	}
	return options
}

// sign adds the token to a request to a node that the client has no call for, by the client's
// rules: never in plain text to another machine.
func (t *clientToken) sign(q *http.Request) error {
	if t.file == "" {
		return nil
	}
	c, err := client.New([]string{q.URL.Scheme + "://" + q.URL.Host}, t.options()...)
	if err != nil {
		return err
	}
	c.Close()
	text, err := os.ReadFile(t.file)
	if err != nil {
		return fmt.Errorf("the file of the token: %w", err)
	}
	q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(text)))
	return nil
}
