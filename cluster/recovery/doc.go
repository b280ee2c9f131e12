// Package recovery works on the data directories of stopped nodes: it restores a backup
// into a new one, verifies what a backup holds, and makes the nodes that are left of a cluster
// those of a new cluster.
//
//	restore.go        Restore: a backup becomes the first node of a new cluster
//	verify.go         Verify: every record of a backup is read
//	recover.go        Inspect and Recover: a lost majority, of which one node is left
//	peers.go          Peers: the file that names several nodes that are left
//	recover_peers.go  RecoverPeers: they become the voters
//	open.go           the stores of a stopped node
//
// Each makes a cluster with an id of its own, of which the directory's node is the only
// voter, or the nodes of the peers file are the voters. Other nodes join it with empty directories. Nodes of the cluster before have
// another cluster's id and are not in the configuration, so they can neither join nor vote.
package recovery
