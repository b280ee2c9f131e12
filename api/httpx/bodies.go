package httpx

import "sync"

// Buffer is a reusable run of bytes.
type Buffer struct{ B []byte }

// Larger buffers are not reused, so that a burst of large requests does not stay in
// memory.
const MaxPooledBytes = 256 << 10

var Buffers = sync.Pool{New: func() any { return &Buffer{make([]byte, 0, 4<<10)} }}

func Recycle(b *Buffer) {
	if b != nil && cap(b.B) <= MaxPooledBytes {
		Buffers.Put(b)
	}
}

// FirstRoom is the first buffer of a request, in bytes. The default budget covers those
// of as many connections as a node allows by default.
const FirstRoom = 4 << 10

// NextRoom returns how many more bytes to allocate after so many bytes of a request have
// arrived: the same number again, or up to three times as many towards an announced size
// (negative: none). So an announced size alone uses almost no memory. One byte more than that
// size is needed to detect the end.
func NextRoom(arrived, announced int64) int64 {
	if announced < arrived {
		return max(arrived, FirstRoom)
	}
	return min(max(3*arrived, FirstRoom), announced-arrived+1)
}

// Grown returns b with capacity for n more bytes. A new buffer has exactly that.
func Grown(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	return append(make([]byte, 0, len(b)+n), b...)
}
