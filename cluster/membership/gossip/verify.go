package gossip

import (
	"fmt"

	"github.com/hashicorp/memberlist"
)

// Verify is a step of the move from plain to encrypted gossip. Nodes that are one step
// apart can always gossip with each other. Without keys it means nothing.
type Verify int

const (
	VerifyFull     Verify = iota // sends encrypted messages, and accepts no others
	VerifyOutgoing               // sends encrypted messages, accepts both
	VerifyOff                    // sends plain messages, accepts both
)

var verifyNames = [...]string{VerifyFull: "full", VerifyOutgoing: "outgoing", VerifyOff: "off"}

func (v Verify) String() string { return verifyNames[v] }

// MarshalText implements encoding.TextMarshaler.
func (v Verify) MarshalText() ([]byte, error) { return []byte(verifyNames[v]), nil }

// UnmarshalText accepts the names of the steps.
func (v *Verify) UnmarshalText(text []byte) error {
	for i, name := range verifyNames {
		if name == string(text) {
			*v = Verify(i)
			return nil
		}
	}
	return fmt.Errorf("it must be off, outgoing or full, got %.40q", text)
}

// Encryption is how gossip is encrypted. The zero value is not at all.
type Encryption struct {
	Keys   *memberlist.Keyring // nil: there are none
	Verify Verify
}

// apply sets memberlist's settings. There is no label: it would be sent in plain text, and
// a cluster could not get one while it runs. Keys are random, so those of two clusters
// differ, and the cluster's id keeps them apart where an operator has copied them.
func (e Encryption) apply(c *memberlist.Config) {
	c.Keyring = e.Keys
	c.GossipVerifyOutgoing = e.Verify != VerifyOff
	c.GossipVerifyIncoming = e.Verify == VerifyFull
}
