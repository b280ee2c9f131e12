package ackguard

import (
	"errors"
	"io"
	"net"
	"syscall"

	"tarry/cluster/transport"
)

// overStale calls request again if a connection ended before its reply. Raft's transport
// pools connections and does not notice that the other end has closed them, as a node that
// restarted has. The first request on each is lost. Raft repeats appends and heartbeats
// itself, but a lost vote may lose an election, and a lost TimeoutNow fails the transfer.
// Each call uses up one connection of the pool, so the last call dials.
//
// request must be one that may reach the server twice: a vote is given to the same
// candidate again, and a TimeoutNow that follows another is refused (checkRPC).
func overStale(request func() error) error {
	err := request()
	for range transport.RaftPool {
		if !connectionEnded(err) {
			break
		}
		err = request()
	}
	return err
}

// connectionEnded reports whether a request failed because its connection was closed, by
// either end. It is not a timeout, nor a server that refuses connections.
func connectionEnded(err error) bool {
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, ended) {
			return true
		}
	}
	return false
}
