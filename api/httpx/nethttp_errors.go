package httpx

import (
	"bytes"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/api/wire"
	"tarry/job"
)

// JSONErrors turns the errors of Go's HTTP server itself into JSON. net/http writes them
// to the connection as text, before it calls a handler, and has no hook to change them:
// the head is too large or not HTTP, the Host is missing, the path is escaped wrongly, or
// an expectation or encoding is unknown. A connection on which no head arrives in time
// still gets no response.
func JSONErrors(l net.Listener) net.Listener { return jsonErrors{l} }

type jsonErrors struct{ net.Listener }

func (l jsonErrors) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &jsonErrorConn{Conn: c}, nil
}

type jsonErrorConn struct {
	net.Conn
	read []byte // what the last Read returned, in the buffer of the HTTP server
}

// Read implements net.Conn.
func (c *jsonErrorConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read = b[:n]
	return n, err
}

// twoLengths reports whether a chunked request has a Content-Length, too. net/http ignores and drops
// that one, and a proxy in front may have gone by it: then what one takes for the end of the body is
// a request to the other. It is not known if the last Read did not return the whole head from its
// beginning. No body must have been read yet.
func (c *jsonErrorConn) twoLengths(r *http.Request) (both, known bool) {
	line, rest, _ := bytes.Cut(c.read, []byte("\n"))
	target, ok := bytes.CutPrefix(line, []byte(r.Method+" "))
	if !ok || !bytes.HasPrefix(target, []byte(r.RequestURI+" ")) {
		return false, false
	}
	for {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			return both, false
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			return both, true
		}
		name, _, _ := bytes.Cut(line, []byte(":"))
		both = both || bytes.EqualFold(name, []byte("Content-Length"))
		rest = after
	}
}

func (c *jsonErrorConn) Write(b []byte) (int, error) {
	answer, ok := serverError(b)
	if !ok {
		return c.Conn.Write(b)
	}
	if _, err := c.Conn.Write(answer); err != nil {
		return 0, err
	}
	return len(b), nil
}

// NetConn returns the connection below.
func (c *jsonErrorConn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets net/http close a connection so that its client reads the response.
func (c *jsonErrorConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite closes the sending half of a connection, if it has one.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// PlainOnTLS is the HTTP response to a client without TLS on a port that requires it.
func PlainOnTLS() string {
	return string(jsonAnswer(http.StatusBadRequest, "this port takes TLS only: use https:// (docs/tls.md)"))
}

// CodeBadHTTP is the code of requests that are not valid HTTP.
const CodeBadHTTP job.Code = "bad_http"

// serverErrors are the statuses of such responses. No handler here sends one of them with
// a text or without a body.
var serverErrors = []int{
	http.StatusBadRequest, http.StatusExpectationFailed, http.StatusRequestHeaderFieldsTooLarge,
	http.StatusNotImplemented, http.StatusHTTPVersionNotSupported,
}

// serverError converts what the server writes if it is an error of net/http itself. Such
// an error comes in one write. Handlers write JSON, or text without CR, so their output
// cannot look like one.
func serverError(b []byte) ([]byte, bool) {
	const protocol = "HTTP/1.1 "
	if len(b) <= len(protocol) || b[len(protocol)] < '4' || !bytes.HasPrefix(b, []byte(protocol)) {
		return nil, false
	}
	line, head, _ := strings.Cut(string(b[:min(len(b), 300)]), "\r\n")
	if !strings.HasPrefix(head, "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n") && !strings.HasPrefix(line, "HTTP/1.1 417 ") {
		return nil, false
	}
	for _, status := range serverErrors {
		prefix := protocol + strconv.Itoa(status) + " " + http.StatusText(status)
		if why, ok := strings.CutPrefix(line, prefix); ok {
			return jsonAnswer(status, strings.TrimPrefix(why, ": ")), true
		}
	}
	return nil, false
}

// jsonAnswer returns a whole response; why may be empty.
func jsonAnswer(status int, why string) []byte {
	switch {
	case status == http.StatusExpectationFailed:
		why = "Expect takes 100-continue only"
	case status == http.StatusRequestHeaderFieldsTooLarge:
		why = "its head is too large"
	case status == http.StatusNotImplemented:
		why = "Transfer-Encoding takes chunked only"
	case why == "":
		why = "its head is malformed, or its path is not escaped (a % itself is %25)"
	}
	b, err := json.Marshal(wire.Error{Code: string(CodeBadHTTP), Error: "the request is not valid HTTP for this server: " + why}, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err) // of a text
	}
	return []byte("HTTP/1.1 " + strconv.Itoa(status) + " " + http.StatusText(status) +
		"\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(b)+1) + "\r\n\r\n" + string(b) + "\n")
}
