// Package conformance is a black-box test suite of the beanstalkd protocol: what
// is sent, and what must come back, over TCP. The same cases run against a real
// beanstalkd and against Tarry, so that the one proves what the other must do.
//
// It knows an address and nothing else of a server. cases.go has the cases, in
// the small language that script.go runs; suite.go runs them all and cleans up
// behind each.
package conformance
