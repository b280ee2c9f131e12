package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"tarry/auth"
)

// tubeListener is an address for beanstalkd clients.
type tubeListener struct {
	flag  string // that names it
	addr  string // host:port or unix:path
	token *tokenFile
	held  *net.TCPListener // the address, see hold; nil: listen takes it
}

// take takes the address before clients can be served, so that nobody else takes it meanwhile.
// Of a socket file, and where a port cannot be held, it only checks that it is free.
func (t *tubeListener) take() error {
	l, err := t.listen()
	if err != nil {
		return err
	}
	if tcp, isTCP := l.(*net.TCPListener); isTCP && hold(tcp) == nil {
		t.held = tcp
		return nil
	}
	return l.Close()
}

// open lets clients connect.
func (t *tubeListener) open() (net.Listener, error) {
	l := t.held
	if l == nil {
		return t.listen()
	}
	t.held = nil
	if err := resume(l); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for beanstalkd clients (--%s): %w", t.flag, err), l.Close())
	}
	return l, nil
}

// drop gives up the address, unless open returned it.
func (t *tubeListener) drop() {
	if t.held != nil {
		t.held.Close()
		t.held = nil
	}
}

func (t *tubeListener) listen() (l net.Listener, err error) {
	if path, isFile := strings.CutPrefix(t.addr, UnixPrefix); isFile {
		l, err = listenUnix(path)
	} else {
		var plain net.ListenConfig
		plain.SetMultipathTCP(false) // which cannot be held
		l, err = plain.Listen(context.Background(), "tcp", t.addr)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for beanstalkd clients (--%s): %w", t.flag, err)
	}
	return l, nil
}

// ofClients returns the token that the clients of the listener have; nil: none.
func (t *tubeListener) ofClients() func() (auth.Secret, error) {
	if t.token == nil {
		return nil
	}
	return t.token.secret
}

// boundListeners are those of --beanstalk-listen: clients of each have a token without sending
// one.
type boundListeners []boundListener

type boundListener struct{ addr, tokenFile string }

const boundForm = "addr=host:port,token-file=FILE"

// UnmarshalText adds listeners. Each begins with its address, so that a list of them is one, too.
func (b *boundListeners) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	var list boundListeners
	for part := range strings.SplitSeq(string(text), ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch last := len(list) - 1; {
		case value == "":
			return errors.New("it must be " + boundForm)
		case key == "addr":
			list = append(list, boundListener{addr: value})
		case key == "token-file" && last >= 0 && list[last].tokenFile == "":
			list[last].tokenFile = value
		default:
			return errors.New("it must be " + boundForm)
		}
	}
	for _, l := range list {
		if l.tokenFile == "" {
			return fmt.Errorf("%s has no token-file; it must be %s", l.addr, boundForm)
		}
	}
	*b = append(*b, list...)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (b boundListeners) MarshalText() ([]byte, error) {
	parts := make([]string, len(b))
	for i, l := range b {
		parts[i] = "addr=" + l.addr + ",token-file=" + l.tokenFile
	}
	return []byte(strings.Join(parts, ",")), nil
}

func (b boundListeners) addresses() (list []string) {
	for _, l := range b {
		list = append(list, l.addr)
	}
	return list
}

// tubeListeners are all addresses for beanstalkd clients.
func (c *Config) tubeListeners() (list []*tubeListener) {
	if addr := c.beanstalkAddr(); addr != "" {
		list = append(list, &tubeListener{flag: "beanstalk-addr", addr: addr})
	}
	for _, b := range c.BeanstalkListen {
		list = append(list, &tubeListener{flag: "beanstalk-listen", addr: b.addr, token: &tokenFile{path: b.tokenFile}})
	}
	return list
}

// checkToken returns an error unless the token of the clients can be read.
func (t *tubeListener) checkToken() error {
	if t.token == nil {
		return nil
	}
	if _, err := t.token.secret(); err != nil {
		return fmt.Errorf("the token of the clients of %s (--%s): %w", t.addr, t.flag, err)
	}
	return nil
}

// tokenFile is a file with a token, which is read again when it has changed.
type tokenFile struct {
	path string

	mu   sync.Mutex
	seen fs.FileInfo // of the file that was read
	has  auth.Secret
}

// secret returns the token. Its errors do not repeat the text.
func (f *tokenFile) secret() (auth.Secret, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := os.Stat(f.path)
	if err != nil {
		return auth.Secret{}, err
	}
	if f.seen != nil && os.SameFile(f.seen, now) && f.seen.ModTime().Equal(now.ModTime()) && f.seen.Size() == now.Size() {
		return f.has, nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return auth.Secret{}, err
	}
	secret, err := auth.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return auth.Secret{}, fmt.Errorf("%s: %w", f.path, err)
	}
	f.seen, f.has = now, secret
	return secret, nil
}

const (
	// socketMode lets the user and the group of the server connect. Whoever can
	// connect can do everything.
	socketMode = 0o660
	// maxSocketPath is what the kernel keeps of a path, without the byte that ends it.
	maxSocketPath = 107
)

// listenUnix listens on a socket file. Closing the listener removes the file.
func listenUnix(path string) (net.Listener, error) {
	if err := removeStaleSocket(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// removeStaleSocket removes the socket file that a process left behind when it was
// killed, and nothing else.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket; move it away, or name another file", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("%s is in use: a process accepts connections on it", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}
