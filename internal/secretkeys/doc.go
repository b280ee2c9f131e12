// Package secretkeys seals secrets that the state of a cluster has, so that neither a disk nor a
// backup shows them.
//
// A Ring is the keys of a node, from a file that the operator makes and gives to all nodes
// (file.go). The first one seals, all of them open, so keys can be replaced one by one. A key is
// named by its id, a digest of it, which stands in front of what it has sealed: whoever has a sealed
// secret can tell which key opens it.
//
// Sealing is AES-256-GCM. What is sealed belongs to a topic: for another one it does not open, so
// that nobody can use a secret by moving it. The same secret of the same topic seals to the same
// bytes under the same key, so that setting it twice changes nothing: the nonce is a keyed digest of
// both, as in synthetic initialization vectors. So a sealed secret shows whether it has changed, and
// its length, and no more.
package secretkeys
