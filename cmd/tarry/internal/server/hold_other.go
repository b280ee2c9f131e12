//go:build !linux

package server

import (
	"errors"
	"net"
)

// hold fails: only on Linux a listener can refuse connections and keep its address.
func hold(*net.TCPListener) error { return errors.ErrUnsupported }

func resume(*net.TCPListener) error { return errors.ErrUnsupported }
