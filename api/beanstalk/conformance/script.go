package conformance

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds the wait for one reply.
const patience = 10 * time.Second

// script runs the lines of one case. Each line starts with the name of a
// connection (a, b, c), which is dialled when it is first named:
//
//	a: text => text     send the one with CRLF; the next line is the other
//	a: put 0 0 9 1 | x => INSERTED {j}     more lines, on either side
//	a: text => yaml k: v; k: v|w   the reply is OK with a dictionary that has these
//	a: text => list x y   the reply is OK with a list of these, in any order
//	            (yaml and list are asked for again for a while when they differ)
//
// An exchange that is not one request and one reply is written in parts:
//
//	a> text     send the text and CRLF
//	a>> text    send the text alone
//	a< text     the next line is this
//	a<< text    the next bytes are these
//	a<yaml, a<list  as above
//	a~ 300ms    no byte comes for so long
//	a/          close the sending half
//	ax          close
//	a<eof       the server has closed
//	* 1s        let time pass, where time is what is tested
//
// Text has Go's escapes. {n} in what is expected binds a number to n the first
// time and stands for it from then on, so that ids need not start at 1;
// {x*500} stands for 500 times x.
type script struct {
	t     *testing.T
	addr  string
	conns map[string]*wire
	bound map[string]string
}

type wire struct {
	net.Conn
	in   *bufio.Reader
	last string // the line sent last
}

var (
	statement = regexp.MustCompile(`^([a-z])(>>|>|<yaml|<list|<eof|<<|<|~|/|x) ?(.*)$`)
	exchange  = regexp.MustCompile(`^([a-z]): (.+?) => (yaml |list |)(.*)$`)
	hole      = regexp.MustCompile(`\{(\w+)\}`)
	repeated  = regexp.MustCompile(`\{(.)\*(\d+)\}`)
)

func (s *script) run(text string) {
	s.t.Helper()
	defer s.close()
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimLeft(line, "\t ")
		if line == "" || line[0] == '#' {
			continue
		}
		for _, part := range parts(line) {
			if err := s.step(part); err != nil {
				require.FailNow(s.t, "the server differs", "line %d, %.100q: %v", i, line, err)
			}
		}
	}
}

// parts are the statements that an exchange stands for.
func parts(line string) (all []string) {
	m := exchange.FindStringSubmatch(line)
	if m == nil {
		return []string{line}
	}
	for _, text := range strings.Split(m[2], " | ") {
		all = append(all, m[1]+"> "+text)
	}
	if m[3] != "" {
		return append(all, m[1]+"<"+m[3]+m[4])
	}
	for _, text := range strings.Split(m[4], " | ") {
		all = append(all, m[1]+"< "+text)
	}
	return all
}

func (s *script) close() {
	for _, c := range s.conns {
		c.Close()
	}
}

func (s *script) step(line string) error {
	if after, ok := strings.CutPrefix(line, "* "); ok {
		d, err := time.ParseDuration(after)
		time.Sleep(d)
		return err
	}
	m := statement.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("this is no statement")
	}
	c, err := s.conn(m[1])
	if err != nil {
		return err
	}
	text, err := expand(m[3])
	if err != nil {
		return err
	}
	c.SetDeadline(time.Now().Add(patience))
	switch m[2] {
	case ">":
		c.last = s.fill(text) + "\r\n"
		_, err = io.WriteString(c, c.last)
	case ">>":
		_, err = io.WriteString(c, s.fill(text))
	case "<":
		err = s.line(c, text)
	case "<<":
		err = c.bytes(s.fill(text))
	case "<yaml":
		err = c.eventually(func() error { return s.dictionary(c, text) })
	case "<list":
		err = c.eventually(func() error { return c.list(strings.Fields(text)) })
	case "<eof":
		if got, err := io.ReadAll(c.in); err != nil || len(got) > 0 {
			return fmt.Errorf("want the end, have %q, %v", got, err)
		}
	case "~":
		err = c.silence(text)
	case "/":
		err = c.Conn.(*net.TCPConn).CloseWrite()
	case "x":
		delete(s.conns, m[1])
		err = c.Close()
	}
	return err
}

// eventually asks again while the answer is not yet as wanted: what another
// connection's end or the time has changed may take a server a moment to see.
func (c *wire) eventually(check func() error) error {
	end := time.Now().Add(patience / 2)
	for {
		err := check()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
		if _, werr := io.WriteString(c, c.last); werr != nil {
			return err
		}
	}
}

func (s *script) conn(name string) (*wire, error) {
	if c := s.conns[name]; c != nil {
		return c, nil
	}
	c, err := dial(s.addr)
	if err == nil {
		s.conns[name] = c
	}
	return c, err
}

func dial(addr string) (*wire, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return &wire{Conn: c, in: bufio.NewReader(c)}, nil
}

// expand resolves repetitions and escapes.
func expand(text string) (string, error) {
	text = repeated.ReplaceAllStringFunc(text, func(m string) string {
		part := repeated.FindStringSubmatch(m)
		n, _ := strconv.Atoi(part[2])
		return strings.Repeat(part[1], n)
	})
	return strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
}

// fill puts in what is bound.
func (s *script) fill(text string) string {
	return hole.ReplaceAllStringFunc(text, func(m string) string {
		if v, ok := s.bound[m[1:len(m)-1]]; ok {
			return v
		}
		return m
	})
}

// line reads a line and binds what is new in it.
func (s *script) line(c *wire, want string) error {
	got, err := c.in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("want %q, have %q, %w", want, got, err)
	}
	pattern := regexp.QuoteMeta(s.fill(want))
	var names []string
	for _, m := range hole.FindAllStringSubmatch(s.fill(want), -1) {
		names = append(names, m[1])
		pattern = strings.Replace(pattern, regexp.QuoteMeta(m[0]), `(\d+)`, 1)
	}
	values := regexp.MustCompile(`^` + pattern + "\r\n$").FindStringSubmatch(got)
	if values == nil {
		return fmt.Errorf("want %q, have %q", s.fill(want), got)
	}
	for i, name := range names {
		s.bound[name] = values[i+1]
	}
	return nil
}

func (c *wire) bytes(want string) error {
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c.in, got); err != nil || string(got) != want {
		return fmt.Errorf("want %q, have %q, %v", want, got[:n], err)
	}
	return nil
}

// body reads an OK reply.
func (c *wire) body() (string, error) {
	head, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	var n int
	if _, err := fmt.Sscanf(head, "OK %d\r\n", &n); err != nil {
		return "", fmt.Errorf("want OK, have %q", head)
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return "", err
	}
	text, whole := bytes.CutSuffix(body, []byte("\r\n"))
	if !whole {
		return "", fmt.Errorf("no CRLF behind %q", body)
	}
	return string(text), nil
}

// dictionary reads key by key; quotes around values differ between releases.
func (s *script) dictionary(c *wire, want string) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	keys, values, err := parseDictionary(body)
	if err != nil {
		return err
	}
	for _, pair := range strings.Split(want, "; ") {
		key, value, given := strings.Cut(s.fill(pair), ": ")
		have, found := values[key]
		if !found {
			return fmt.Errorf("no key %q among %v", key, keys)
		}
		if given && !slices.Contains(strings.Split(value, "|"), have) {
			return fmt.Errorf("%s is %q, want %q", key, have, value)
		}
	}
	return nil
}

func parseDictionary(body string) (keys []string, values map[string]string, err error) {
	rest, ok := strings.CutPrefix(body, "---\n")
	if !ok || !strings.HasSuffix(rest, "\n") {
		return nil, nil, fmt.Errorf("no YAML document: %q", body)
	}
	values = map[string]string{}
	for _, line := range strings.Split(strings.TrimSuffix(rest, "\n"), "\n") {
		key, value, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, nil, fmt.Errorf("no key and value: %q", line)
		}
		keys = append(keys, key)
		values[key] = strings.Trim(value, `"`)
	}
	return keys, values, nil
}

// list compares as sets: the order of tubes is the server's affair.
func (c *wire) list(want []string) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	names := strings.Split(strings.TrimSuffix(body, "\n"), "\n- ")
	if names[0] != "---" {
		return fmt.Errorf("no YAML list: %q", body)
	}
	have := slices.Sorted(slices.Values(names[1:]))
	if slices.Sort(want); !slices.Equal(have, want) {
		return fmt.Errorf("want the list %v, have %v", want, have)
	}
	return nil
}

func (c *wire) silence(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(d))
	if b, err := c.in.Peek(1); len(b) > 0 {
		rest, _ := c.in.Peek(c.in.Buffered())
		return fmt.Errorf("want silence, have %q", rest)
	} else if ne, ok := err.(net.Error); !ok || !ne.Timeout() {
		return fmt.Errorf("want silence, have %w", err)
	}
	return nil
}
