package cluster

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"tarry/cluster/membership/memberpb"
	"tarry/cluster/transport"
)

// openToAll are the calls by which nodes that are in no cluster find one. All other calls
// are for members only.
var openToAll = map[string]bool{
	memberpb.Membership_Status_FullMethodName:  true,
	memberpb.Membership_Promise_FullMethodName: true,
	memberpb.Membership_Invite_FullMethodName:  true,
	memberpb.Membership_Prove_FullMethodName:   true,
}

// admission rejects calls of nodes that are not members. It identifies a caller by the
// server id in the connection's header. This keeps out unrelated and removed nodes, but
// not an attacker who uses a member's id.
type admission struct {
	member func(serverID string) bool
}

func (a admission) check(ctx context.Context, method string) error {
	var caller *transport.CallerAddr
	if p, ok := grpcpeer.FromContext(ctx); ok {
		caller, _ = p.Addr.(*transport.CallerAddr)
	}
	switch {
	case caller == nil || caller.ServerID == "":
		return status.Error(codes.PermissionDenied, "the caller does not say which server it is")
	case openToAll[method] || a.member(caller.ServerID):
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "server %.64q is no member of the cluster", caller.ServerID)
}

// isMember reports whether a connection is from a member.
func (a admission) isMember(c net.Conn) bool {
	caller, ok := c.RemoteAddr().(*transport.CallerAddr)
	return ok && a.member(caller.ServerID)
}

// splitCallers returns a listener for the connections of l that belong to members, and one for the
// others. Closing either closes l and ends the work that it starts with run.
func splitCallers(l net.Listener, isMember func(net.Conn) bool, run func(func())) (members, strangers net.Listener) {
	m := &callerListener{Listener: l, conns: make(chan net.Conn), done: make(chan struct{})}
	s := &callerListener{Listener: l, conns: make(chan net.Conn), done: make(chan struct{})}
	run(func() {
		defer m.Close()
		defer s.Close()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			to := s
			if isMember(c) {
				to = m
			}
			select {
			case to.conns <- c:
			case <-to.done:
				c.Close()
				return
			}
		}
	})
	return m, s
}

// callerListener is one of those that splitCallers returns.
type callerListener struct {
	net.Listener
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Accept implements net.Listener.
func (l *callerListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *callerListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}
