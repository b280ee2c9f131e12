// Package slot tells which shard a job is in, from its id or its number alone.
//
// A cluster with N shards spreads the jobs of each topic over them. An id has a basis, the basis
// has one of 4,096 slots, and the slot has a shard: the remainder by N. Ids with the same tag,
// such as {order-5}-close and {order-5}-remind, have the same basis and so are always in one shard. Ids
// that the server made have no slot: their number, the seq, has the shard as its remainder.
//
// The package is pure and imports only job. All clients compute the same; testdata/slots.json has examples for
// them. Start at Basis.
package slot
