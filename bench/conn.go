package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"tarry/bench/localcluster"
)

// conn is one persistent connection to a node, for one goroutine. It dials when
// it must, and again after every failure. It speaks HTTP/1.1 by itself and
// understands answers with a Content-Length or in chunks, up to maxAnswer bytes;
// a tubeConn makes it speak beanstalkd.
type conn struct {
	ctx    context.Context
	addr   string
	access localcluster.Access

	nc   net.Conn // nil while not connected
	stop func() bool
	r    *bufio.Reader
	out  []byte
	body []byte // of the last answer
}

const (
	maxAnswer   = 32 << 20
	dialTimeout = 5 * time.Second
)

// newConn makes a connection that ends with ctx, also in the middle of a call.
func newConn(ctx context.Context, addr string, access localcluster.Access) *conn {
	return &conn{ctx: ctx, addr: addr, access: access}
}

// close drops the connection; the next call dials anew.
func (c *conn) close() {
	if c.nc != nil {
		c.stop()
		c.nc.Close()
		c.nc = nil
	}
}

func (c *conn) connect() error {
	if c.nc != nil {
		return nil
	}
	nc, err := c.dial()
	if err != nil {
		return err
	}
	c.nc = nc
	c.stop = context.AfterFunc(c.ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	c.r = bufio.NewReaderSize(nc, 16<<10)
	return nil
}

func (c *conn) dial() (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout}
	if c.access.TLS == nil {
		return d.DialContext(c.ctx, "tcp", c.addr)
	}
	ctx, cancel := context.WithTimeout(c.ctx, dialTimeout) // the handshake, too
	defer cancel()
	return (&tls.Dialer{NetDialer: d, Config: c.access.TLS}).DialContext(ctx, "tcp", c.addr)
}

// succeeded starts every answer to a call that did all it was asked for.
var succeeded = []byte(`{"success":true`)

// statusError is an answer that is not a success.
type statusError struct {
	status int
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %.200s", e.status, e.body) }

// call makes one request and returns the answer's body, which is valid until the
// next call. An answer that is not a full success is a *statusError.
func (c *conn) call(method, path string, body []byte, limit time.Duration) ([]byte, error) {
	if err := c.connect(); err != nil {
		return nil, err
	}
	status, err := c.exchange(method, path, body, limit)
	if err != nil {
		c.close()
		return nil, err
	}
	// A batch answers 200 also when some of its items failed.
	if status/100 != 2 || !bytes.HasPrefix(c.body, succeeded) {
		return nil, &statusError{status, string(c.body)}
	}
	return c.body, nil
}

func (c *conn) exchange(method, path string, body []byte, limit time.Duration) (status int, err error) {
	if err := c.send(method, path, body, limit); err != nil {
		return 0, err
	}
	return c.readAnswer()
}

// send writes a request. Its answer may be read for as long as limit.
func (c *conn) send(method, path string, body []byte, limit time.Duration) error {
	if err := c.nc.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil {
		return err // it may have ended before the deadline was set
	}
	c.out = append(c.out[:0], method...)
	c.out = append(c.out, ' ')
	c.out = append(c.out, path...)
	c.out = append(c.out, " HTTP/1.1\r\nHost: localhost\r\n"...)
	if c.access.Token != "" {
		c.out = append(append(append(c.out, "Authorization: Bearer "...), c.access.Token...), "\r\n"...)
	}
	c.out = append(c.out, "Content-Type: application/json\r\nContent-Length: "...)
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	c.out = append(c.out, body...)
	_, err := c.nc.Write(c.out)
	return err
}

var errMalformed = errors.New("the answer is not HTTP as Tarry speaks it")

func (c *conn) readAnswer() (status int, err error) {
	status, length, chunked, err := c.readHead()
	if err != nil {
		return 0, err
	}
	c.body = c.body[:0]
	if chunked {
		return status, c.readChunks()
	}
	return status, c.readBytes(length)
}

// readHead reads an answer up to its body, which is chunked or has the length.
func (c *conn) readHead() (status, length int, chunked bool, err error) {
	line, err := c.line()
	if err != nil {
		return 0, 0, false, err
	}
	// HTTP/1.1 200 OK
	if len(line) < 12 {
		return 0, 0, false, errMalformed
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, 0, false, errMalformed
	}
	for {
		if line, err = c.line(); err != nil {
			return 0, 0, false, err
		}
		if len(line) == 0 {
			return status, length, chunked, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 || length > maxAnswer {
				return 0, 0, false, errMalformed
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		}
	}
}

// line reads up to the next CRLF; the result is valid until the next read.
func (c *conn) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// readBytes appends n bytes to the body.
func (c *conn) readBytes(n int) error {
	start := len(c.body)
	if start+n > maxAnswer {
		return errMalformed
	}
	c.body = append(c.body, make([]byte, n)...)
	_, err := io.ReadFull(c.r, c.body[start:])
	return err
}

func (c *conn) readChunks() error {
	for more := true; more; {
		var err error
		if more, err = c.readChunk(); err != nil {
			return err
		}
	}
	return nil
}

// readChunk appends a chunk to the body, and reports whether more follow.
func (c *conn) readChunk() (more bool, err error) {
	line, err := c.line()
	if err != nil {
		return false, err
	}
	n, err := strconv.ParseUint(string(line), 16, 31)
	if err != nil {
		return false, errMalformed
	}
	if err := c.readBytes(int(n)); err != nil {
		return false, err
	}
	_, err = c.line() // the CRLF behind the chunk, or the empty trailer
	return n > 0, err
}

// stream makes a request whose answer does not end, and calls line with each line of it,
// without its end, until ctx ends.
func (c *conn) stream(method, path string, body []byte, line func([]byte) error) (err error) {
	if err := c.connect(); err != nil {
		return err
	}
	defer c.close()
	if err := c.send(method, path, body, callLimit); err != nil {
		return err
	}
	status, _, chunked, err := c.readHead()
	if err != nil {
		return err
	}
	if status != 200 || !chunked {
		return &statusError{status, "no stream"}
	}
	c.body = c.body[:0]
	for more := true; more; {
		// The server sends a heartbeat when it has nothing else.
		if err := c.nc.SetDeadline(time.Now().Add(2 * callLimit)); err != nil {
			return err
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if more, err = c.readChunk(); err != nil {
			return err
		}
		for {
			one, rest, found := bytes.Cut(c.body, []byte("\n"))
			if !found {
				break
			}
			if err := line(one); err != nil {
				return err
			}
			c.body = append(c.body[:0], rest...)
		}
	}
	return errors.New("the server ended the stream")
}

// text finds a string member in an answer of the server, whose members come
// without white space. The load generator's own bodies hold no quotes, so the
// first match is the member. It returns "" when there is none.
func text(answer []byte, name string) string {
	_, rest, found := bytes.Cut(answer, []byte(`"`+name+`":"`))
	if !found {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}
