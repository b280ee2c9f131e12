//go:build !linux

package transport

import (
	"net"
	"time"
)

// boundSilence does nothing: keepalive detects a peer that is gone.
func boundSilence(net.Conn, time.Duration) error { return nil }
