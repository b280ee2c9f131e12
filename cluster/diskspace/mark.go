package diskspace

import (
	"fmt"
	"strconv"
	"strings"
)

// The automatic mark is a share of the disk within bounds. The minimum is what one node
// writes before it frees anything: two log segments of 64 MiB, flushes of four
// memtables of 32 MiB, and a compaction. The maximum avoids wasting space
// on large disks. On a disk that is too small for the minimum the mark is a quarter.
const (
	autoPercent = 5
	autoLeast   = 512 << 20
	autoMost    = 2 << 30
)

// Mark is a low-water mark. The zero value is automatic.
type Mark struct {
	kind  markKind
	value float64 // bytes or percent
}

type markKind uint8

const (
	automatic markKind = iota
	inBytes
	inPercent
)

// Bytes is a mark of so many bytes; 0: the disk is never low.
func Bytes(n uint64) Mark { return Mark{inBytes, float64(n)} }

// of returns the mark in bytes on a disk of the given size.
func (m Mark) of(total uint64) uint64 {
	switch m.kind {
	case inBytes:
		return uint64(m.value)
	case inPercent:
		return uint64(float64(total) * m.value / 100)
	}
	least := min(autoLeast, total/4)
	return min(max(total/100*autoPercent, least), autoMost)
}

// MarshalText implements encoding.TextMarshaler.
func (m Mark) MarshalText() ([]byte, error) {
	switch m.kind {
	case inBytes:
		return strconv.AppendFloat(nil, m.value, 'f', 0, 64), nil
	case inPercent:
		return append(strconv.AppendFloat(nil, m.value, 'g', -1, 64), '%'), nil
	}
	return []byte("auto"), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. It takes auto, bytes
// (1073741824), or a share of the disk (5%).
func (m *Mark) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "auto" {
		*m = Mark{}
		return nil
	}
	if share, ok := strings.CutSuffix(s, "%"); ok {
		v, err := strconv.ParseFloat(share, 64)
		if err != nil || !(v >= 0 && v < 100) {
			return fmt.Errorf("%q is not a share of the disk such as 5%%", s)
		}
		*m = Mark{inPercent, v}
		return nil
	}
	v, err := strconv.ParseUint(s, 10, 53)
	if err != nil {
		return fmt.Errorf("%q is not auto, a number of bytes or a share of the disk such as 5%%", s)
	}
	*m = Bytes(v)
	return nil
}
