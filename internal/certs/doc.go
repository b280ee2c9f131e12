// Package certs makes, names, reads and reloads the certificates of Tarry.
//
// A certificate names its cluster, a role and a holder in one URI,
// tarry://CLUSTER/ROLE/NAME (identity.go), so that a certificate for a client cannot
// stand in for a node's. Authority (issue.go) makes them with P-256 keys, files.go
// stores them without ever overwriting a key, and Source (source.go) is a pair with its
// authorities that is read again while a process runs.
//
// The package knows nothing of connections: who trusts which certificate is decided
// where connections are made, such as in cluster/nodetls.
package certs
