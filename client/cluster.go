package client

import (
	"context"
	"net/http"
	"time"
)

// OperatorTime bounds an operator's call that changes the cluster or compares its nodes.
const OperatorTime = 2 * time.Minute

const removedPath = "/v1/cluster/removed"

// Members lists the nodes of the cluster.
func (c Cluster) Members(ctx context.Context) ([]Member, error) {
	var out memberList
	_, err := c.client.call(ctx, request{method: http.MethodGet, path: membersPath, repeat: true}, &out)
	if err == nil {
		c.client.nodes.meet(out.Members)
	}
	for i := range out.Members {
		out.Members[i].Admission = out.Admission
	}
	return out.Members, err
}

// Health returns the health of the cluster.
func (c Cluster) Health(ctx context.Context) (Health, error) {
	return read[Health](ctx, c.client, "/v1/cluster/health")
}

// Verify compares the states of all nodes at one index of the log. It blocks until all have
// replied, for up to two minutes.
func (c Cluster) Verify(ctx context.Context) (Verification, error) {
	return ask[Verification](ctx, c.client, request{method: http.MethodPost, path: "/v1/cluster/verify", work: OperatorTime, repeat: true, reads: true})
}

// TransferLeadership transfers leadership to the node id, or to the best follower if that is
// empty. It blocks until the transfer is done. moved is false if the node leads already.
func (c Cluster) TransferLeadership(ctx context.Context, id string) (moved bool, err error) {
	in := struct {
		ID string `json:"id,omitzero"`
	}{id}
	var out transfer
	_, err = c.client.call(ctx, request{method: http.MethodPost, path: "/v1/cluster/transfer-leadership", in: in, work: OperatorTime}, &out)
	return out.Moved != nil && *out.Moved, err
}

// RemoveMember removes a node from the cluster for good. It fails if the quorum would be
// lost. The node cannot join again before Admit.
func (c Cluster) RemoveMember(ctx context.Context, id string) error {
	return c.client.operate(ctx, request{method: http.MethodDelete, path: membersPath + "/" + segment(id)})
}

// Removed lists the nodes that were removed and must not join again.
func (c Cluster) Removed(ctx context.Context) ([]RemovedNode, error) {
	list, err := read[removedList](ctx, c.client, removedPath)
	return list.Removed, err
}

// Admit lets a node that was removed join again, with an empty data directory.
func (c Cluster) Admit(ctx context.Context, id string) error {
	return c.client.operate(ctx, request{method: http.MethodDelete, path: removedPath + "/" + segment(id)})
}

// Join makes a node join the cluster whose nodes have the gossip addresses addrs
// (host:port). The client must have the address of only that node.
func (c Node) Join(ctx context.Context, addrs []string) error {
	in := struct {
		Addresses []string `json:"addresses"`
	}{addrs}
	return c.client.operate(ctx, request{method: http.MethodPost, path: "/v1/cluster/join", in: in, here: true})
}

// Leave makes a node leave its cluster and stop. The client must have the address of only
// that node.
func (c Node) Leave(ctx context.Context) error {
	return c.client.operate(ctx, request{method: http.MethodPost, path: "/v1/cluster/leave", here: true})
}

func (c *Client) operate(ctx context.Context, q request) error {
	q.work = OperatorTime
	_, err := ask[done](ctx, c, q)
	return err
}
