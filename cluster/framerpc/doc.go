// Package framerpc carries the calls of a gRPC service between two nodes as
// length-prefixed frames on one TCP connection, without HTTP/2.
//
// It is for the calls that are made for almost every job. Such a call is a few hundred
// bytes, and headers, flow control and a stream for each call cost gRPC more processor
// time than the message does (docs/benchmarks-choices.md). Services and clients are the generated
// ones: a Client is a grpc.ClientConnInterface, a Server a grpc.ServiceRegistrar. Calls
// that are rare stay on gRPC itself.
//
// A connection has one goroutine that writes and one that reads at each end (link.go).
// The writer takes everything that waits and writes it at once, so concurrent calls share
// system calls. A call or a stream is an exchange of frames with one number (frame.go).
// When the connection breaks, all its exchanges fail. The error, a LostError, has whether
// the request was sent, because a request that was not may be repeated.
//
// The package knows nothing of the services. Start at Client in client.go and Server in
// server.go.
package framerpc
