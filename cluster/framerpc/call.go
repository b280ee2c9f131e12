package framerpc

import (
	"sync/atomic"

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

// call is an exchange at its caller.
type call struct {
	progress atomic.Int32
	reply    chan reply    // of a call; holds one
	stream   *clientStream // nil for a call
}

// reply is what a call ends with: an encoded message, or an error.
type reply struct {
	payload []byte
	err     error
}

// The progress of a call.
const (
	waiting int32 = iota // its frame is in the queue
	sent                 // the writer has taken it
	ended                // nobody waits for it
)

// begin is called by the writer that is about to send the call. It returns false if the
// call has ended: then it is not sent.
func (c *call) begin() bool { return c.progress.CompareAndSwap(waiting, sent) }

// end ends the call and returns whether it may have been sent.
func (c *call) end() bool { return c.progress.Swap(ended) == sent }

// fail ends the call with an error.
func (c *call) fail(code codes.Code, why error) {
	err := lost(c.end(), code, why)
	if c.stream != nil {
		c.stream.finish(err)
		return
	}
	c.answer(reply{err: err})
}

// answer delivers the reply. Only the first one counts.
func (c *call) answer(r reply) {
	select {
	case c.reply <- r:
	default:
	}
}
