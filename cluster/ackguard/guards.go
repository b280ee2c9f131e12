package ackguard

// Guards are those of all Raft groups of a node.
type Guards []*Guard

// Known returns the acks that this node sends to others.
func (gs Guards) Known() (list []Ack) {
	for _, g := range gs {
		list = append(list, g.Known()...)
	}
	return list
}

// Of returns the acks of a server that this node knows, at most one a group.
func (gs Guards) Of(serverID string) (list []Ack) {
	for _, g := range gs {
		if ack := g.Of(serverID); ack.Term > 0 {
			list = append(list, ack)
		}
	}
	return list
}

// Merge records the acks that another node knows, as Guard.Merge does.
func (gs Guards) Merge(list []Ack) {
	for _, g := range gs {
		g.Merge(list)
	}
}
