package cluster

import "tarry/auth"

// Auth returns the tokens of clients and their settings, as this node has applied them. It is
// cheap and does not block.
func (s *Shard) Auth() *auth.State { return s.machine.Auth() }

// AuthChanged returns a channel that is closed when Auth may return another state. To miss no
// change, call it before Auth.
func (s *Shard) AuthChanged() <-chan struct{} { return s.machine.AuthChanged() }
