// Package freeport finds ports on 127.0.0.1 for nodes that this machine starts for
// tests and benchmarks. Start at Take.
package freeport

import (
	"fmt"
	"net"
	"os"
	"sync"
)

// Ports are taken below Linux's ephemeral range, so that no outgoing connection
// sits on a node's port while the node is down.
const (
	firstPort = 20000
	lastPort  = 31999
)

var ports = struct {
	sync.Mutex
	next int
}{next: firstPort + os.Getpid()*37%(lastPort-firstPort)}

// Take finds a port of 127.0.0.1 that nobody listens on, by TCP or UDP, and that
// this process has not given out lately. Other processes start their search
// elsewhere, so that programs that run side by side rarely meet.
func Take() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for range lastPort - firstPort {
		p := ports.next
		if ports.next++; ports.next > lastPort {
			ports.next = firstPort
		}
		if portIsFree(p) {
			return p, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

func portIsFree(p int) bool {
	addr := fmt.Sprintf("127.0.0.1:%d", p)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	return u.Close() == nil
}
