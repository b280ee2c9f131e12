package leaderrpc

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that codec wraps
	"google.golang.org/grpc/mem"
)

// messages encodes and decodes the messages of all calls.
var messages = codec{encoding.GetCodecV2("proto")}

// codec is Protocol Buffers. It uses generated code where there is some, as for the Node
// service: with reflection the results of a batch would take several times as long.
type codec struct{ encoding.CodecV2 }

// encoder and decoder are what protoc-gen-go-vtproto generates.
type (
	encoder interface {
		SizeVT() int
		MarshalToSizedBufferVT([]byte) (int, error)
	}
	decoder interface{ UnmarshalVTUnsafe([]byte) error }
)

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(encoder)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := m.SizeVT()
	if mem.IsBelowBufferPoolingThreshold(size) {
		b := make([]byte, size)
		_, err := m.MarshalToSizedBufferVT(b)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	}
	pool := mem.DefaultBufferPool()
	b := pool.Get(size)
	if _, err := m.MarshalToSizedBufferVT((*b)[:size]); err != nil {
		pool.Put(b)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(b, pool)}, nil
}

// Unmarshal implements encoding.CodecV2. The strings and bytes of a message with
// generated code alias one copy of its encoding.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(decoder); ok {
		return m.UnmarshalVTUnsafe(data.Materialize())
	}
	return c.CodecV2.Unmarshal(data, v)
}
