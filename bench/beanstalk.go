package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// tubeConn is a connection that speaks the beanstalkd protocol. It puts into the
// first of its tubes and reserves from all of them. After any answer that it did
// not hope for it starts afresh, so that no late answer is taken for another's.
type tubeConn struct {
	*conn
	tubes []string
	id    []byte // of the job reserved last
}

// maxTubeBody bounds the body of a reserved job.
const maxTubeBody = 1 << 20

// tubes are named after the scenario: what one leaves behind does not disturb
// the next.
func tube(s Scenario, i int) string { return "bench-" + string(s) + "-" + strconv.Itoa(i) }

// ownTube is a connection with the tube of its worker.
func ownTube(w *worker) *tubeConn {
	c := &w.run.config
	return &tubeConn{conn: w.conn, tubes: []string{tube(c.Scenario, w.number%c.Topics)}}
}

// allTubes is a connection that watches every tube.
func allTubes(w *worker) *tubeConn {
	t := &tubeConn{conn: w.conn}
	for i := range w.run.config.Topics {
		t.tubes = append(t.tubes, tube(w.run.config.Scenario, i))
	}
	return t
}

// answerError is an answer other than the one a command asks for.
type answerError struct{ want, got string }

func (e *answerError) Error() string { return fmt.Sprintf("the answer is %q, not %s", e.got, e.want) }

// enter dials when it must, and says which tubes it is about.
func (t *tubeConn) enter() error {
	if t.nc != nil {
		return nil
	}
	if err := t.connect(); err != nil {
		return err
	}
	t.out = t.out[:0]
	if t.access.Token != "" {
		t.out = append(append(append(t.out, "auth "...), t.access.Token...), "\r\n"...)
	}
	t.out = append(append(t.out, "use "...), t.tubes[0]...)
	for _, name := range t.tubes {
		t.out = append(append(t.out, "\r\nwatch "...), name...)
	}
	t.out = append(t.out, "\r\nignore default\r\n"...)
	err := t.send(t.out, callLimit)
	if err == nil && t.access.Token != "" {
		_, err = t.answer("AUTHORIZED")
	}
	if err == nil {
		_, err = t.answer("USING ")
	}
	for i := 0; err == nil && i < len(t.tubes)+1; i++ {
		_, err = t.answer("WATCHING ")
	}
	return t.checked(err)
}

// checked drops the connection after an error.
func (t *tubeConn) checked(err error) error {
	if err != nil {
		t.close()
	}
	return err
}

func (t *tubeConn) send(commands []byte, limit time.Duration) error {
	if err := t.nc.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if err := t.ctx.Err(); err != nil {
		return err // it may have ended before the deadline was set
	}
	_, err := t.nc.Write(commands)
	return err
}

// answer reads one line and returns what follows want in it, valid until the
// next read.
func (t *tubeConn) answer(want string) ([]byte, error) {
	line, err := t.line()
	if err != nil {
		return nil, err
	}
	if len(line) < len(want) || string(line[:len(want)]) != want {
		return nil, &answerError{strings.TrimSpace(want), string(line)}
	}
	return line[len(want):], nil
}

// call sends commands in one write and reads n answers, which all must begin
// with want.
func (t *tubeConn) call(commands []byte, n int, want string) error {
	if err := t.enter(); err != nil {
		return err
	}
	err := t.send(commands, callLimit)
	for i := 0; err == nil && i < n; i++ {
		_, err = t.answer(want)
	}
	return t.checked(err)
}

var timedOut = []byte("TIMED_OUT")

// tubeWait is how long the scenarios wait for a job, in seconds.
const tubeWait = 10

// reserve waits up to the given seconds for a job. Its body is valid until the next
// call; false means that there was none.
func (t *tubeConn) reserve(seconds int) (body []byte, ok bool, err error) {
	if err := t.enter(); err != nil {
		return nil, false, err
	}
	t.out = append(strconv.AppendInt(append(t.out[:0], "reserve-with-timeout "...), int64(seconds), 10), "\r\n"...)
	if err = t.send(t.out, callLimit); err == nil {
		ok, err = t.readJob()
	}
	return t.body, ok, t.checked(err)
}

func (t *tubeConn) readJob() (ok bool, err error) {
	line, err := t.line()
	if err != nil || bytes.Equal(line, timedOut) {
		return false, err
	}
	verb, rest, _ := bytes.Cut(line, []byte(" "))
	id, size, _ := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseUint(string(size), 10, 32)
	if err != nil || string(verb) != "RESERVED" || n > maxTubeBody {
		return false, &answerError{"RESERVED", string(line)}
	}
	t.id = append(t.id[:0], id...)
	if cap(t.body) < int(n)+2 {
		t.body = make([]byte, n+2)
	}
	t.body = t.body[:n+2] // with the line's end behind the body
	if _, err := io.ReadFull(t.r, t.body); err != nil {
		return false, err
	}
	t.body = t.body[:n]
	return true, nil
}

// delete deletes the job that was reserved last.
func (t *tubeConn) delete() error {
	t.out = append(append(append(t.out[:0], "delete "...), t.id...), "\r\n"...)
	return t.call(t.out, 1, "DELETED")
}

// appendPut adds a put of a body of size bytes that begins with head; the delay
// is in whole seconds.
func appendPut(buf []byte, delay, size int, head []byte) []byte {
	buf = append(buf, "put 1024 "...)
	buf = strconv.AppendInt(buf, int64(delay), 10)
	buf = append(buf, " 60 "...)
	buf = strconv.AppendInt(buf, int64(size), 10)
	buf = append(append(buf, "\r\n"...), head...)
	for range size - len(head) {
		buf = append(buf, 'x')
	}
	return append(buf, "\r\n"...)
}

const inserted = "INSERTED "

// runPut puts jobs that are ready at once: that is what most clients of
// beanstalkd do. Every connection sends Pipeline puts in one write, then reads
// the answer of each.
func runPut(ctx context.Context, c Config) (*Result, error) {
	var window []byte
	for range c.Pipeline {
		window = appendPut(window, 0, c.Size, nil)
	}
	return measure(ctx, c, c.Connections, func(ctx context.Context, w *worker) {
		t := ownTube(w)
		w.loop(ctx, func() (int, error) {
			return c.Pipeline, t.call(window, c.Pipeline, inserted)
		})
	})
}

// runTubeCycle lets every connection put a job, reserve one of the same tube and
// delete that.
func runTubeCycle(ctx context.Context, c Config) (*Result, error) {
	put := appendPut(nil, 0, c.Size, nil)
	return measure(ctx, c, c.Connections, func(ctx context.Context, w *worker) {
		t := ownTube(w)
		w.loop(ctx, func() (int, error) {
			if err := t.call(put, 1, inserted); err != nil {
				return 0, fmt.Errorf("put: %w", err)
			}
			_, ok, err := t.reserve(tubeWait)
			if err != nil {
				return 0, fmt.Errorf("reserve: %w", err)
			}
			if !ok {
				return 0, fmt.Errorf("no job of %s was handed out within 10 s", t.tubes[0])
			}
			if err := t.delete(); err != nil {
				return 0, fmt.Errorf("delete: %w", err)
			}
			return 1, nil
		})
	})
}
