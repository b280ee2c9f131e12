// Package memberpb holds the messages by which nodes form and change a cluster.
// It is generated from membership.proto by `make proto`.
package memberpb
