package framerpc

import (
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// LostError is the error of a call to which the other node did not reply.
type LostError struct {
	Status *status.Status // why; its code is Canceled, DeadlineExceeded, Unavailable or InvalidArgument
	Sent   bool           // the request may have reached the other node
}

func (e *LostError) Error() string              { return e.Status.Message() }
func (e *LostError) GRPCStatus() *status.Status { return e.Status }

func lost(sent bool, code codes.Code, why error) *LostError {
	return &LostError{Status: status.New(code, why.Error()), Sent: sent}
}

// Late is the only call option that a Client knows: what becomes of a message that arrives after
// the caller has given up, because its context has ended. Without it such a message is dropped.
// Do gets the encoded message, which it may keep. It is called from the goroutine that reads the
// connection, and must not block. The receiver of a stream must receive until an error.
type Late struct {
	grpc.EmptyCallOption
	Do func(message []byte)
}

func lateOf(opts []grpc.CallOption) func([]byte) {
	for _, o := range opts {
		if l, ok := o.(Late); ok {
			return l.Do
		}
	}
	return nil
}

// call is an exchange at its caller. It is in session.calls until it ends. Who removes it from
// there ends it, and nobody else does: so it ends once, and a call whose reply was read ends with
// that.
type call struct {
	progress atomic.Int32
	reply    chan reply    // of a call; holds one
	stream   *clientStream // nil for a call
	late     func([]byte)  // of Late; nil: none
	left     bool          // the caller has given up; with session.calling, while it is in calls
}

func newCall() *call { return &call{reply: make(chan reply, 1)} }

// reply is what a call ends with: an encoded message, or an error.
type reply struct {
	payload []byte
	err     error
}

// The progress of a call. Once it counts as sent it does for good: its outcome may come later than
// the end of its caller's context, and what was done must not be done again.
const (
	waiting   int32 = iota // its frame is in the queue
	sent                   // the writer has taken it
	withdrawn              // it is not sent any more
)

// begin is called by the writer that is about to send the call. It returns false if the
// call was withdrawn: then it is not sent.
func (c *call) begin() bool { return c.progress.CompareAndSwap(waiting, sent) }

// withdraw keeps a call from being sent. It returns false if it may have been sent already.
func (c *call) withdraw() bool {
	return c.progress.CompareAndSwap(waiting, withdrawn) || c.progress.Load() == withdrawn
}

// fail ends the call with an error.
func (c *call) fail(code codes.Code, why error) {
	err := lost(!c.withdraw(), code, why)
	if c.stream != nil {
		c.stream.finish(err)
		return
	}
	c.reply <- reply{err: err}
}

// finish ends the call as the other end says.
func (c *call) finish(k kind, payload []byte) {
	c.withdraw() // a reply to what was not sent breaks the rules; it is not sent then
	var err error
	if k == kindEnd {
		err = statusError(payload)
	}
	switch {
	case c.stream != nil:
		c.stream.finish(err)
	case c.left:
		if k == kindReply {
			c.late(payload)
		}
	case k == kindEnd && err == nil:
		c.reply <- reply{err: lost(true, codes.Unavailable, errNoReply)}
	default:
		c.reply <- reply{payload: payload, err: err}
	}
}
