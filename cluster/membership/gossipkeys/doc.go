// Package gossipkeys has the keys with which nodes encrypt gossip, in memory and in the
// file of each node.
//
// A Ring is an ordered list of keys with a revision (ring.go). The first key, the primary,
// encrypts; all of them decrypt, so keys can be replaced one by one while nodes gossip.
// The leader makes the next revision of a ring, and a node adopts every ring that is newer
// than its own (Newer), whoever brings it. A node writes its file before it uses a ring
// (file.go), so that it restarts with the keys it had.
//
// Nothing here formats a key. What may be shown is its fingerprint (key.go).
package gossipkeys
