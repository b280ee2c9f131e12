package recovery

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
)

const (
	// PeersVersion is the version of the format of a peers file.
	PeersVersion = 1

	maxPeersFile = 1 << 20 // bytes
	maxPeers     = 64
)

// Peers are the nodes that are left of a cluster whose majority is lost, and what each has. They
// are the voters of the new cluster, whose id and first term follow from them: so each node can
// be recovered on its own machine, and only by the same file.
type Peers struct {
	Version   int    `json:"version"`
	ClusterID string `json:"cluster_id"` // of the cluster that lost its majority
	Nodes     []Peer `json:"nodes"`
}

// Peer is a node that is left, and the end of its log when it was stopped.
type Peer struct {
	ServerID     string `json:"server_id"`
	Address      string `json:"address"` // cluster address; a wrong one is corrected when the node runs
	AppliedIndex uint64 `json:"applied_index"`
	LastIndex    uint64 `json:"last_index"`
	LastTerm     uint64 `json:"last_term"`
	VoteTerm     uint64 `json:"vote_term"`
}

// PeerOf is a stopped node as one that is left.
func PeerOf(h *Held) Peer {
	p := Peer{ServerID: h.ServerID, AppliedIndex: h.AppliedIndex, LastIndex: h.LastIndex, LastTerm: h.LastTerm, VoteTerm: h.VoteTerm}
	for _, m := range h.Members {
		if m.ServerID == h.ServerID {
			p.Address = m.Address
		}
	}
	return p
}

// NewPeers returns the peers file for stopped nodes. It returns an error if they are not of one
// cluster, or a majority of its voters: then nothing is lost.
func NewPeers(nodes []Held) (*Peers, error) {
	if len(nodes) == 0 {
		return nil, errors.New("there are no nodes")
	}
	p := &Peers{Version: PeersVersion, ClusterID: nodes[0].ClusterID}
	for i := range nodes {
		h := &nodes[i]
		switch {
		case h.Interrupted:
			return nil, fmt.Errorf("a recovery of %s has begun and not ended: its state may have writes that were never committed. Run that recovery to its end, or leave the node out", h.ServerID)
		case h.ClusterID != p.ClusterID:
			return nil, fmt.Errorf("%s is of cluster %q, and %s of cluster %q", h.ServerID, h.ClusterID, nodes[0].ServerID, p.ClusterID)
		}
		p.Nodes = append(p.Nodes, PeerOf(h))
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	source := p.source()
	newest := &nodes[slices.IndexFunc(nodes, func(h Held) bool { return h.ServerID == source.ServerID })]
	left := 0
	for _, m := range newest.Members {
		if m.Voter && p.find(m.ServerID) != nil {
			left++
		}
	}
	if voters := newest.Voters(); left >= raftconfig.Quorum(voters) {
		return nil, fmt.Errorf("%d of the %d voters are left, and they are a majority: start them, nothing has to be recovered", left, voters)
	}
	return p, nil
}

// ReadPeers reads a peers file and checks it.
func ReadPeers(from io.Reader) (*Peers, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxPeersFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the peers file: %w", err)
	}
	if len(text) > maxPeersFile {
		return nil, fmt.Errorf("the peers file has more than %d bytes", maxPeersFile)
	}
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("the peers file is not JSON: %w", err)
	}
	if version.Version != PeersVersion {
		return nil, fmt.Errorf("the peers file has version %d, and this release knows version %d", version.Version, PeersVersion)
	}
	p := new(Peers)
	if err := json.Unmarshal(text, p, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("the peers file: %w", err)
	}
	return p, p.Check()
}

// Encode returns the text of the file.
func (p *Peers) Encode() ([]byte, error) {
	text, err := json.Marshal(p, jsontext.WithIndent("  "))
	return append(text, '\n'), err
}

// Check returns an error unless the file could be one of NewPeers.
func (p *Peers) Check() error {
	switch {
	case p.ClusterID == "":
		return errors.New("cluster_id is empty: the nodes were in no cluster, or were killed before it had an id; then take the one with the largest last_term, and of equal ones the largest last_index, and recover it with --as-only-voter")
	case len(p.Nodes) < 2:
		return fmt.Errorf("nodes: there must be at least 2, got %d; a single node is recovered with --as-only-voter", len(p.Nodes))
	case len(p.Nodes) > maxPeers:
		return fmt.Errorf("nodes: there must be at most %d, got %d", maxPeers, len(p.Nodes))
	}
	for i, n := range p.Nodes {
		id := raftconfig.NodeID(n.ServerID)
		host, port, err := net.SplitHostPort(n.Address)
		switch {
		case id == n.ServerID:
			return fmt.Errorf("nodes[%d].server_id is %q; it must be a node id, a dot and an incarnation, as tarry recover prints it", i, n.ServerID)
		case err != nil || host == "" || port == "":
			return fmt.Errorf("nodes[%d].address is %q; it must be host:port of the node's --cluster-addr", i, n.Address)
		case n.AppliedIndex < 2 || // the first entries make the cluster
			n.LastTerm == 0 || n.LastIndex < n.AppliedIndex || n.VoteTerm < n.LastTerm:
			return fmt.Errorf("nodes[%d]: applied_index %d, last_index %d, last_term %d and vote_term %d are not those of a node that has data", i, n.AppliedIndex, n.LastIndex, n.LastTerm, n.VoteTerm)
		case slices.ContainsFunc(p.Nodes[:i], func(o Peer) bool { return raftconfig.NodeID(o.ServerID) == id }):
			return fmt.Errorf("nodes[%d]: there are two nodes %s", i, id)
		}
	}
	return nil
}

func (p *Peers) find(serverID string) *Peer {
	for i := range p.Nodes {
		if p.Nodes[i].ServerID == serverID {
			return &p.Nodes[i]
		}
	}
	return nil
}

// source is the node whose log is that of the new cluster. A log with a newer last term, or of
// one term a longer one, has all that any of the others knows to be committed.
func (p *Peers) source() *Peer {
	most := slices.MaxFunc(p.Nodes, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.LastTerm, b.LastTerm), cmp.Compare(a.LastIndex, b.LastIndex), strings.Compare(b.ServerID, a.ServerID))
	})
	return p.find(most.ServerID)
}

// Source is the id of the node whose log is that of the new cluster.
func (p *Peers) Source() string { return p.source().ServerID }

// NewClusterID is the id of the new cluster.
func (p *Peers) NewClusterID() string {
	nodes := slices.Clone(p.Nodes)
	slices.SortFunc(nodes, func(a, b Peer) int { return strings.Compare(a.ServerID, b.ServerID) })
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d %q", p.Version, p.ClusterID)
	for _, n := range nodes {
		fmt.Fprintf(&b, " %q %d %d %d %d", n.ServerID, n.AppliedIndex, n.LastIndex, n.LastTerm, n.VoteTerm)
	}
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:16])
}

// term is one that no node of the old cluster has used, as far as those that are left know.
func (p *Peers) term() (term uint64) {
	for _, n := range p.Nodes {
		term = max(term, n.VoteTerm)
	}
	return term + 1
}

// configuration is that of the new cluster. Until a node has it from the source, the source is
// the only voter that it knows: without the source, the others cannot elect one of them, which
// may lack what the source has.
func (p *Peers) configuration(source bool) []byte {
	var c raft.Configuration
	from := p.Source()
	for _, n := range p.Nodes {
		s := raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(n.ServerID), Address: raft.ServerAddress(n.Address)}
		if !source && n.ServerID != from {
			s.Suffrage = raft.Nonvoter
		}
		c.Servers = append(c.Servers, s)
	}
	return raft.EncodeConfiguration(c)
}

// leastApplied is how far the state of each node but the source is at least.
func (p *Peers) leastApplied() uint64 {
	least, from := ^uint64(0), p.Source()
	for _, n := range p.Nodes {
		if n.ServerID != from {
			least = min(least, n.AppliedIndex)
		}
	}
	return least
}

// CheckNode returns an error unless the file was made for a stopped node as it is, or as an
// interrupted recovery with this file has left it.
func (p *Peers) CheckNode(h *Held) error {
	n := p.find(h.ServerID)
	if n == nil {
		var ids []string
		for _, o := range p.Nodes {
			ids = append(ids, o.ServerID)
		}
		return fmt.Errorf("the peers file does not have this node, %s; it has %s. To let the node join the new cluster, move its directory away", h.ServerID, strings.Join(ids, ", "))
	}
	if h.ClusterID == p.NewClusterID() && h.Interrupted {
		return nil
	}
	if h.ClusterID == p.NewClusterID() {
		return fmt.Errorf("%s has been recovered with this peers file already: start it", h.ServerID)
	}
	if h.ClusterID != p.ClusterID {
		return fmt.Errorf("the peers file is for cluster %s, and %s is of cluster %s", p.ClusterID, h.ServerID, h.ClusterID)
	}
	var same bool
	if source := n.ServerID == p.Source(); source {
		same = h.LastIndex == n.LastIndex && h.LastTerm == n.LastTerm || h.Interrupted && h.LastIndex == n.LastIndex+1 && h.LastTerm == p.term()
		same = same && (h.AppliedIndex == n.AppliedIndex || h.Interrupted)
	} else {
		same = h.AppliedIndex == n.AppliedIndex && (h.LastIndex == n.LastIndex && h.LastTerm == n.LastTerm || h.Interrupted)
	}
	if !same || h.VoteTerm > p.term() {
		return fmt.Errorf("%s has changed since the peers file was made: the file says that it is at entry %d of term %d with %d applied, and it is at entry %d of term %d with %d applied. Make the file again, with all nodes stopped",
			h.ServerID, n.LastIndex, n.LastTerm, n.AppliedIndex, h.LastIndex, h.LastTerm, h.AppliedIndex)
	}
	return nil
}
