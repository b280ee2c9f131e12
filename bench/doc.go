// Package bench is the load generator of `tarry bench`: producers and consumers over
// HTTP or the beanstalkd protocol with a given number of connections. It measures
// latency and lateness percentiles, CPU time, failover and restart times.
//
// It has its own HTTP client: one persistent connection per worker, preformatted
// requests, and a reader for exactly the replies of Tarry's server. On a small machine
// the generator shares the cores with the nodes, so its own cost reduces the measured
// throughput. Memory is bounded at any rate: latencies are stored in histograms of
// fixed size.
//
// It uses the server only by its command line and the two protocols, and can run a real
// beanstalkd instead. Start with Config in config.go and Run in run.go; each scenario
// has a file.
package bench
