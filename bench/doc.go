// Package bench is the load generator behind `tarry bench`: producers and
// consumers over HTTP or the beanstalkd
// protocol with a given number of connections, latency and lateness
// percentiles, CPU, failover and restart times.
//
// Its HTTP client is its own: one persistent connection a worker, requests
// written by hand and a reader that understands just what Tarry's server sends.
// On a small machine the generator shares the cores with the nodes, so what it
// costs itself is taken away from what it measures. Memory is bounded whatever
// the rate: latencies go into histograms of fixed size.
//
// It knows the server only by its command line and the two protocols, and can put
// a real beanstalkd in its place. Start with
// Config in config.go and Run in run.go; each scenario has a file.
package bench
