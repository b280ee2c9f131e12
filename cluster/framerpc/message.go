package framerpc

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// encoder and decoder are what protoc-gen-go-vtproto generates. Messages without it are
// encoded by reflection.
type (
	encoder interface {
		SizeVT() int
		MarshalToSizedBufferVT([]byte) (int, error)
	}
	decoder interface{ UnmarshalVTUnsafe([]byte) error }
)

// appendMessage appends a frame with a message; nil: without one.
func appendMessage(b []byte, exchange uint64, k kind, method string, m any) ([]byte, error) {
	size := 0
	e, generated := m.(encoder)
	p, _ := m.(proto.Message)
	switch {
	case generated:
		size = e.SizeVT()
	case p != nil:
		size = proto.Size(p)
	case m != nil:
		return b, fmt.Errorf("%T is no message", m)
	}
	if size > maxFrame-headerBytes-256 {
		return b, fmt.Errorf("the message has %d bytes; a frame may have %d", size, maxFrame)
	}
	framed, room := appendFrame(b, exchange, k, method, size)
	switch {
	case generated:
		if n, err := e.MarshalToSizedBufferVT(room); err != nil || n != size {
			return b, fmt.Errorf("encode %T: %d of %d bytes: %w", m, n, size, err)
		}
	case p != nil:
		encoded, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(room[:0], p)
		if err != nil || len(encoded) != size {
			return b, fmt.Errorf("encode %T: %d of %d bytes: %w", m, len(encoded), size, err)
		}
	}
	return framed, nil
}

// decode makes m the message that payload encodes. The strings and bytes of a message
// with generated code alias payload.
func decode(payload []byte, m any) error {
	switch m := m.(type) {
	case decoder:
		return m.UnmarshalVTUnsafe(payload)
	case proto.Message:
		return proto.Unmarshal(payload, m)
	}
	return fmt.Errorf("%T is no message", m)
}
