package framerpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/metadata"
)

// serverStream is the handler's end of a stream. It implements grpc.ServerStream.
type serverStream struct {
	exchange *exchange
	conn     *serverConn
	id       uint64
	inbox    chan []byte
}

// SendMsg implements grpc.ServerStream. It may block until earlier messages are written.
// m must not be changed afterwards.
func (s *serverStream) SendMsg(m any) error {
	if err := s.exchange.Err(); err != nil {
		return err
	}
	return s.conn.put(outgoing{exchange: s.id, kind: kindMessage, message: m, from: s.exchange})
}

// RecvMsg implements grpc.ServerStream. It returns the context's error when the caller
// has canceled the stream or the connection has ended.
func (s *serverStream) RecvMsg(m any) error {
	select {
	case payload := <-s.inbox:
		return decode(payload, m)
	case <-s.exchange.Done():
		return s.exchange.Err()
	}
}

// deliver passes a message to the handler. It blocks while the inbox is full.
func (s *serverStream) deliver(payload []byte) {
	select {
	case s.inbox <- payload:
	case <-s.exchange.Done():
	}
}

// Context implements grpc.ServerStream.
func (s *serverStream) Context() context.Context { return s.exchange }

var errNoMetadata = errors.New("frames carry no metadata")

// SetHeader implements grpc.ServerStream. It fails: there is none.
func (s *serverStream) SetHeader(metadata.MD) error { return errNoMetadata }

// SendHeader implements grpc.ServerStream. It fails: there is none.
func (s *serverStream) SendHeader(metadata.MD) error { return errNoMetadata }

// SetTrailer implements grpc.ServerStream. There is none.
func (s *serverStream) SetTrailer(metadata.MD) {}
