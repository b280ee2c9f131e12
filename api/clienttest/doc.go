// Package clienttest has the tests of package client that need a node, or the rules of one: client
// is a module of its own, and its tests may not use this one. It has no other code.
package clienttest
