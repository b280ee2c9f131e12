// Package network gives every node of a cluster a network of its own and breaks
// it: drops in one direction, by port, in part; delay, duplication, reordering,
// a narrow line; new addresses for all.
//
// Each node lives in a Linux network namespace. A bridge in one more namespace
// joins them with the machine itself, so no rule of the machine's own firewall
// sees the traffic and none is changed. A node has two addresses: one for
// clients, which stays, and one for other nodes, which Readdress changes. Nodes
// know each other by name only.
//
// Faults are iptables rules in the nodes' namespaces. They match what nodes send
// each other and leave clients alone, unless a Rule names Clients. Linux can
// also delay packets (netem), but not every kernel has it and it knows no
// directions, so here packets to delay go through a netfilter queue to this
// process and back.
//
// It needs root. It knows nothing of Tarry. Start with Network in network.go;
// rule.go is what can be broken, line.go the delayed line.
package network
