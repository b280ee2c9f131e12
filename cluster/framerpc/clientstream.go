package framerpc

import (
	"context"
	"errors"
	"io"
	"sync"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// inboxSize is how many messages of a stream wait for its receiver. While it is full,
// the whole connection waits, so receivers must be fast.
const inboxSize = 256

// clientStream is the caller's end of a stream. It implements grpc.ClientStream.
type clientStream struct {
	ctx     context.Context
	session *session
	id      uint64
	inbox   chan []byte
	late    func([]byte)  // of Late; nil: none
	over    chan struct{} // closed by finish

	once sync.Once
	err  error // why it is over; io.EOF: the other end ended it without an error
}

// SendMsg implements grpc.ClientStream. It returns io.EOF when the stream has ended;
// RecvMsg returns why.
func (s *clientStream) SendMsg(m any) error {
	select {
	case <-s.over:
		return io.EOF
	default:
	}
	if s.session.put(outgoing{exchange: s.id, kind: kindMessage, message: m}) != nil {
		return io.EOF
	}
	return nil
}

// RecvMsg implements grpc.ClientStream.
func (s *clientStream) RecvMsg(m any) error {
	select {
	case payload := <-s.inbox:
		return decode(payload, m)
	default:
	}
	select {
	case payload := <-s.inbox:
		return decode(payload, m)
	case <-s.over:
	}
	select { // what was delivered before the end
	case payload := <-s.inbox:
		return decode(payload, m)
	default:
		return s.err
	}
}

// deliver passes a message to the receiver. It blocks while the inbox is full.
func (s *clientStream) deliver(payload []byte) {
	select {
	case s.inbox <- payload:
	case <-s.over:
		if s.late != nil {
			s.late(payload)
		}
		return
	}
	select {
	case <-s.over:
	default:
		return
	}
	// The receiver may have found the inbox empty already, and receives no more.
	select {
	case payload := <-s.inbox:
		if s.late != nil {
			s.late(payload)
		}
	default:
	}
}

// finish ends the stream; nil: without an error.
func (s *clientStream) finish(err error) {
	s.once.Do(func() {
		if s.err = err; err == nil {
			s.err = io.EOF
		}
		close(s.over)
	})
}

// Context implements grpc.ClientStream.
func (s *clientStream) Context() context.Context { return s.ctx }

// Header implements grpc.ClientStream. There is none.
func (s *clientStream) Header() (metadata.MD, error) { return nil, nil }

// Trailer implements grpc.ClientStream. There is none.
func (s *clientStream) Trailer() metadata.MD { return nil }

// CloseSend implements grpc.ClientStream. It fails: a stream ends with its context.
func (s *clientStream) CloseSend() error {
	return errors.New("a stream of frames ends with its context")
}

// statusError decodes the payload of kindEnd.
func statusError(payload []byte) error {
	if len(payload) == 0 {
		return nil
	}
	st := new(spb.Status)
	if err := proto.Unmarshal(payload, st); err != nil {
		return err
	}
	return status.ErrorProto(st)
}
