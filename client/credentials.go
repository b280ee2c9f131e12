package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// WithToken sends a token with each call (docs/tokens.md). New fails if an address is plain
// http and not of this machine: see WithTokenOverHTTP.
func WithToken(token string) Option {
	return func(c *Client) { c.token = &tokenFile{text: strings.TrimSpace(token)} }
}

// WithTokenFile is WithToken with the token that a file has, alone. When the file changes, the
// next call sends the new one.
func WithTokenFile(path string) Option { return func(c *Client) { c.token = &tokenFile{path: path} } }

// WithTokenOverHTTP also sends the token without TLS to other machines. Whoever reads the
// network then has it.
func WithTokenOverHTTP() Option { return func(c *Client) { c.tokenOverHTTP = true } }

// maxTokenFile is far more than a token has.
const maxTokenFile = 4 << 10

// tokenFile is a token, with the file that it is read from, if there is one.
type tokenFile struct {
	path string

	mu   sync.Mutex
	text string
	time time.Time // of the file when it was read
	size int64
}

// read returns the token.
func (f *tokenFile) read() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" {
		return f.text, checkToken(f.text)
	}
	about, err := os.Stat(f.path)
	if err != nil {
		return "", fmt.Errorf("the file of the token: %w", err)
	}
	if f.text != "" && about.ModTime().Equal(f.time) && about.Size() == f.size {
		return f.text, nil
	}
	text, err := readSmall(f.path)
	if err != nil {
		return "", fmt.Errorf("the file of the token: %w", err)
	}
	if err := checkToken(text); err != nil {
		return "", fmt.Errorf("%s: %w", f.path, err)
	}
	f.text, f.time, f.size = text, about.ModTime(), about.Size()
	return text, nil
}

func readSmall(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, maxTokenFile))
	return strings.TrimSpace(string(b)), err
}

// checkToken refuses what cannot stand in a header. It never repeats the text.
func checkToken(text string) error {
	if text == "" {
		return errors.New("the token is empty")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the token is not one word of ASCII")
	}
	return nil
}

// mayHaveToken reports whether the token may be sent to a base URL.
func (c *Client) mayHaveToken(node string) bool {
	return c.token == nil || c.mayHaveSecrets(node)
}

// mayHaveSecrets reports whether nobody between can read what is sent to a base URL, or need
// be feared.
func (c *Client) mayHaveSecrets(node string) bool {
	return c.tokenOverHTTP || strings.HasPrefix(node, "https://") || isLoopback(node)
}

// isLoopback reports whether a base URL is of this machine.
func isLoopback(node string) bool {
	u, err := url.Parse(node)
	if err != nil {
		return false
	}
	host := u.Hostname()
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || host == "localhost"
}

// checkAddresses refuses addresses to which a token must not be sent.
func (c *Client) checkAddresses() error {
	for _, node := range c.nodes.given {
		if !c.mayHaveToken(node) {
			return inPlainText("a token", node)
		}
	}
	return nil
}

// inPlainText is the refusal to send a secret to a base URL.
func inPlainText(secret, node string) error {
	_, host, _ := strings.Cut(node, "://")
	name, _, _ := net.SplitHostPort(host)
	return fmt.Errorf("address %q: %s is not sent to another machine (%s) without TLS; use https:// (docs/tls.md), or WithTokenOverHTTP if the network can be trusted", host, secret, name)
}

// newRequest makes a request with the token. body is nil for none.
func (c *Client) newRequest(ctx context.Context, method, node, path string, body []byte) (*http.Request, *Error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	q, err := http.NewRequestWithContext(ctx, method, node+path, content)
	if err != nil {
		return nil, errorf(CodeInvalidArgument, "the request cannot be made: %w", err)
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if c.token != nil {
		token, err := c.token.read()
		if err != nil {
			return nil, errorf(CodeInvalidArgument, "the request is not sent: %w", err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
	}
	return q, nil
}
