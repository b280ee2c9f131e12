// Package keyfile reads and makes files that hold keys: what a file has is bounded, and nobody but
// its owner, and its group to read it, has access. Package secretkeys and package gossipkeys say
// what is in them.
package keyfile
