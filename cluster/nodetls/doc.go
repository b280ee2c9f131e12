// Package nodetls secures connections between nodes with TLS 1.3 and certificates of
// their own authority, and tells which node is at the other end.
//
// The certificate of a node names it as tarry://CLUSTER/node/NODEID (package
// internal/certs). Both ends check the chain, the usage, the cluster and the role, and
// the dialer checks that it has reached the node that it meant. Names in DNS play no part:
// addresses of nodes change, their ids do not.
//
// The first byte of a connection tells TLS from plain text (Begins), so that one port takes
// both while a cluster moves from one to the other (Mode). Package transport uses it below
// its header, and checks that the ids in the header are those of the certificate.
package nodetls
