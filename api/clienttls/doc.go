// Package clienttls lets a port speak TLS with clients, or TLS and plain text while they
// move from one to the other.
//
// The first byte of a connection tells which. It is read with the connection's first Read, so
// that a silent client holds up neither Accept nor anybody else. A plain client of a port
// that wants TLS gets a reply in its own protocol that says so.
//
// HTTP/2 is not offered: the limits on connections are also the limits on requests at a time,
// which one connection of HTTP/2 with many streams would pass.
package clienttls
