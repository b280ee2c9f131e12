// Package localcluster runs Tarry nodes as real processes on this machine: start,
// kill, pause, restart and wipe them, and ask them who leads.
//
// The load generator uses it for `tarry bench --start`, the integration tests for
// their faults. It controls nodes only by their command line, signals and HTTP,
// and imports no package of the server. For comparison it also starts a real
// beanstalkd. The owner of a Cluster calls Stop, which ends every process that
// was started.
//
// Start with Cluster in cluster.go; node.go is one process, secure.go closes all of them.
package localcluster
