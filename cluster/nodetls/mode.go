package nodetls

import "fmt"

// Mode is a step of the move from plain connections between nodes to TLS. Nodes that are
// one step apart can always talk to each other.
type Mode int

const (
	Off     Mode = iota // plain only
	Accept              // dials plain, accepts both
	Prefer              // dials TLS and then plain, accepts both
	Require             // TLS only
)

var modes = [...]string{Off: "off", Accept: "accept", Prefer: "prefer", Require: "require"}

func (m Mode) String() string { return modes[m] }

// MarshalText implements encoding.TextMarshaler.
func (m Mode) MarshalText() ([]byte, error) { return []byte(modes[m]), nil }

// UnmarshalText accepts the names of the modes.
func (m *Mode) UnmarshalText(text []byte) error {
	for i, name := range modes {
		if name == string(text) {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("it must be off, accept, prefer or require, got %.40q", text)
}
