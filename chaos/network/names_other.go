//go:build !linux

package network

import "net"

// listenForNames cannot be: Available fails first.
func listenForNames(string) (net.PacketConn, error) { return nil, Available() }
