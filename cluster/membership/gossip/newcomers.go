package gossip

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/hashicorp/memberlist"
)

// Without gossip keys a stranger can fill the pool with nodes that do not exist. Gossip
// needs minutes to find that they are dead, since it probes one node a second. Meanwhile the
// pool pings newcomers: only one that exists answers by the name of its run.

// maxChecks bounds the newcomers that wait for their ping, and those that are pinged at a
// time.
const maxChecks = 64

// newcomers are the nodes that the pool, once full, lets in only if they answer. The
// Pool's mutex guards the two maps.
type newcomers struct {
	waiting  map[string]*net.UDPAddr // by gossip name: where to ping it
	answered map[string]bool         // by gossip name: it is being let in
	wake     chan struct{}           // holds at most one wake-up
}

func newNewcomers() newcomers {
	return newcomers{make(map[string]*net.UDPAddr), make(map[string]bool), make(chan struct{}, 1)}
}

// admit reports whether a node may be let in beside so many live ones. If not, it may
// have an answer after the node was pinged. It does not block.
func (w *newcomers) admit(n *memberlist.Node, live int) bool {
	switch {
	case live < maxLive:
		return true
	case live >= 2*maxLive:
		return false
	case w.answered[n.Name]:
		return true
	case len(w.waiting) < maxChecks:
		w.waiting[n.Name] = &net.UDPAddr{IP: slices.Clone(n.Addr), Port: int(n.Port)}
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	return false
}

// checkNewcomers pings the newcomers until ctx ends, and then until the last ping and the
// last exchange have ended.
func (p *Pool) checkNewcomers(ctx context.Context) {
	for {
		select {
		case <-p.newcomers.wake:
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		batch := p.newcomers.waiting
		p.newcomers.waiting = make(map[string]*net.UDPAddr)
		p.mu.Unlock()
		var checks sync.WaitGroup
		for name, addr := range batch {
			checks.Go(func() { p.checkNewcomer(ctx, name, addr) })
		}
		checks.Wait()
	}
}

// checkNewcomer pings one newcomer, and exchanges records with it if it answers. It blocks
// for a few seconds at most.
func (p *Pool) checkNewcomer(ctx context.Context, name string, addr *net.UDPAddr) {
	at := net.JoinHostPort(addr.IP.String(), strconv.Itoa(addr.Port))
	if !joinable(at) {
		return
	}
	if _, err := p.list.Ping(name, addr); err != nil || ctx.Err() != nil {
		return
	}
	p.setAnswered(name, true)
	defer p.setAnswered(name, false)
	if _, err := p.list.Join([]string{at}); err != nil {
		p.o.Logger.Debug("a node answers a ping, and exchanges no records", "other_node", name, "error", err)
	}
}

func (p *Pool) setAnswered(name string, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answered {
		p.newcomers.answered[name] = true
	} else {
		delete(p.newcomers.answered, name)
	}
}
