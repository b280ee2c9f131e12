// Package network gives every node of a cluster a separate network and injects faults: loss
// in one direction, by port, or partial; delay, duplication, reordering, low bandwidth; new
// addresses for all nodes.
//
// Each node runs in a Linux network namespace. A bridge in one more namespace
// connects them with the machine itself, so the traffic does not pass the machine's own
// firewall rules, and these are not changed. A node has two addresses: one for
// clients, which stays, and one for other nodes, which Readdress changes. Nodes
// know each other by name only.
//
// Faults are iptables rules in the nodes' namespaces. They match what nodes send
// each other and leave clients alone, unless a Rule names Clients. Linux can
// also delay packets (netem), but not every kernel has it and it does not distinguish
// directions. So packets to delay pass through a netfilter queue to this process and
// back.
//
// It needs root. It knows nothing of Tarry. Start with Network in network.go;
// rule.go has the faults, line.go the delayed connection.
package network
