// Package replay gives back what was read of a connection to find out what it speaks.
package replay

import "net"

// Conn is a connection of which the first bytes have been read: Read returns them first.
type Conn struct {
	net.Conn
	first []byte
}

// New returns c with the bytes first, which were read from it, before the rest.
func New(c net.Conn, first []byte) *Conn { return &Conn{Conn: c, first: first} }

func (c *Conn) Read(b []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.first)
	c.first = c.first[n:]
	return n, nil
}

// NetConn returns the connection below, as that of a tls.Conn does.
func (c *Conn) NetConn() net.Conn { return c.Conn }
