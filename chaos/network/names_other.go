//go:build !linux

package network

import "net"

// listenForNames is never called, because Available fails first.
func listenForNames(string) (net.PacketConn, error) { return nil, Available() }
