package network

import "net"

// listenForNames opens the port of the name service in a namespace.
func listenForNames(namespace string) (c net.PacketConn, err error) {
	err = inside(namespace, func() error {
		c, err = net.ListenPacket("udp4", namePort)
		return err
	})
	return c, err
}
