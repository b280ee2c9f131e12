package framerpc

import (
	"errors"
	"math"
	"net"
	"runtime"
	"sync"
	"time"
)

const (
	// writeTimeout is how long the other node may leave what was written unread.
	writeTimeout = 15 * time.Second
	// maxWaiting bounds the messages of streams that wait to be written; a stream that
	// sends more blocks. Calls are bounded by maxExchanges.
	maxWaiting = 4096
	// maxExchanges bounds the exchanges of one connection, and the replies that wait to be
	// written: an exchange ends when its reply is queued.
	maxExchanges = 65_536
	// maxRefusals bounds what waits to be written when a call is refused. Beyond it the
	// connection is not read, so a caller that is no member and reads nothing holds little.
	maxRefusals = 64
	// keptBuffer is the largest buffer that the writer keeps for the next frames, and
	// about how much it encodes before it writes.
	keptBuffer = 256 << 10
)

var (
	errClosed  = errors.New("the connection was closed")
	errNoReply = errors.New("the call ended without a reply")
)

// link is one end of a connection: the queue of what is to be written, and its writer.
type link struct {
	conn net.Conn
	wake chan struct{} // something waits to be written
	done chan struct{} // closed by close

	mu    sync.Mutex
	queue []outgoing
	room  sync.Cond // the queue was taken, or the link is closed
	err   error     // why the link is closed; nil while it is open
}

// outgoing is a frame that waits to be written. It is encoded by the writer.
type outgoing struct {
	exchange uint64
	kind     kind
	method   string
	message  any
	of       *call     // the call that it begins; nil: none
	from     *exchange // whose handler sends it; nil: a caller sends it
}

// notWritten is called once it is certain that the other end does not get the frame.
func (o outgoing) notWritten() {
	if o.from != nil && o.from.unsent != nil && o.message != nil {
		o.from.unsent(o.message)
	}
}

func newLink(c net.Conn) *link {
	l := &link{conn: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.room.L = &l.mu
	return l
}

// put queues a frame. It blocks only for a message of a stream, while too many frames
// wait. It fails when the link is closed.
func (l *link) put(o outgoing) error {
	most := math.MaxInt
	if o.kind == kindMessage {
		most = maxWaiting
	}
	return l.putWithin(most, o)
}

// putWithin blocks while most or more frames wait. The writer must not call it.
func (l *link) putWithin(most int, o outgoing) error {
	l.mu.Lock()
	for l.err == nil && len(l.queue) >= most {
		l.room.Wait()
	}
	err := l.err
	if err == nil {
		l.queue = append(l.queue, o)
	}
	l.mu.Unlock()
	l.signal()
	return err
}

// open reports whether the link is not closed.
func (l *link) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil
}

func (l *link) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the frames that wait. Their calls count as sent from now on. Frames of
// calls that have ended are left out.
func (l *link) take(spare []outgoing) []outgoing {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.queue
	l.queue = spare[:0]
	l.room.Broadcast()
	kept := taken[:0]
	for _, o := range taken {
		if o.of != nil && !o.of.begin() {
			continue
		}
		kept = append(kept, o)
	}
	clear(taken[len(kept):])
	return kept
}

// write writes what is queued until the link is closed or a write fails. unencodable is
// called with a frame whose message cannot be encoded.
func (l *link) write(unencodable func(outgoing, error)) error {
	var buf []byte
	var spare []outgoing
	for {
		select {
		case <-l.wake:
		case <-l.done:
			return errClosed
		}
		// Let other runnable goroutines queue their frames first, so that they share
		// this write. It costs nothing when no other goroutine is runnable.
		runtime.Gosched()
		for {
			batch := l.take(spare)
			if len(batch) == 0 {
				spare = batch
				break
			}
			var err error
			if buf, err = l.writeBatch(buf[:0], batch, unencodable); err != nil {
				return err
			}
			clear(batch)
			spare = batch
			if cap(spare) > maxWaiting {
				spare = nil
			}
		}
		if cap(buf) > keptBuffer {
			buf = nil
		}
	}
}

func (l *link) writeBatch(buf []byte, batch []outgoing, unencodable func(outgoing, error)) ([]byte, error) {
	first := 0 // whose frame buf begins with
	for i, o := range batch {
		encoded, err := appendMessage(buf, o.exchange, o.kind, o.method, o.message)
		if err != nil {
			unencodable(o, err)
		}
		buf = encoded
		if len(buf) >= keptBuffer || i == len(batch)-1 {
			if n, err := l.flush(buf); err != nil {
				if n > 0 { // the other end may have any of these
					first = i + 1
				}
				for _, o := range batch[first:] {
					o.notWritten()
				}
				return nil, err
			}
			buf, first = buf[:0], i+1
		}
	}
	return buf, nil
}

// flush writes buf, and returns how much of it was written.
func (l *link) flush(buf []byte) (int, error) {
	if len(buf) == 0 {
		return 0, nil
	}
	if err := l.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return l.conn.Write(buf)
}

// close closes the connection; why is the error of later puts. The first one counts.
func (l *link) close(why error) {
	l.mu.Lock()
	first := l.err == nil
	var left []outgoing
	if first {
		l.err = why
		left, l.queue = l.queue, nil
		l.room.Broadcast()
	}
	l.mu.Unlock()
	if first {
		close(l.done)
		l.conn.Close() // its only error would be that it is closed already
	}
	for _, o := range left {
		o.notWritten()
	}
}
