// Package freeport finds ports on 127.0.0.1 for nodes that this machine starts for
// tests and benchmarks. Start at Take.
package freeport

import (
	"fmt"
	"net"
	"os"
	"sync"
)

// Ports are below Linux's ephemeral range, so that no outgoing connection uses a node's port
// while the node is down.
//
// Processes share them by blocks: the process that listens on the first port of a block
// owns the block until it ends.
const (
	firstPort = 20000
	blocks    = 120
	blockSize = 100
)

var ports = struct {
	sync.Mutex
	owned []net.Listener // on the first port of each block of this process
	rest  []int          // of the latest block: not returned yet
	next  int            // the block to try next
}{next: os.Getpid() % blocks}

// Take returns a port of 127.0.0.1 that nobody listens on, by TCP or UDP. This process has
// not returned it before, and no other process returns it while this one runs.
func Take() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for {
		for len(ports.rest) > 0 {
			p := ports.rest[0]
			ports.rest = ports.rest[1:]
			if portIsFree(p) {
				return p, nil
			}
		}
		if err := claimBlock(); err != nil {
			return 0, err
		}
	}
}

// claimBlock is called with ports locked.
func claimBlock() error {
	for range blocks {
		first := firstPort + ports.next*blockSize
		ports.next = (ports.next + 1) % blocks
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first))
		if err != nil {
			continue // another process has it
		}
		ports.owned = append(ports.owned, l)
		for p := first + 1; p < first+blockSize; p++ {
			ports.rest = append(ports.rest, p)
		}
		return nil
	}
	return fmt.Errorf("no free port between %d and %d", firstPort, firstPort+blocks*blockSize-1)
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
