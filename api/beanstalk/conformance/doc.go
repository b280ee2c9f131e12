// Package conformance is a black-box test suite of the beanstalkd protocol: what is sent,
// and what must come back, over TCP. The same cases run against a real beanstalkd and
// against Tarry, so the run against beanstalkd proves that the cases are right.
//
// It knows only the address of a server. cases.go has the cases, in the small language
// that script.go runs; suite.go runs them all and cleans up after each.
package conformance
