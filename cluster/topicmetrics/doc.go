// Package topicmetrics has the metrics of topics, for at most a given number of them. All
// other topics are summed as topic "other".
//
// Metrics counts events (Record) and lateness (Delivered) while its node leads, so that
// each event is counted on one node and a sum over the nodes counts it once. The numbers
// of jobs come from the state of the leader when the metrics are requested.
//
// A topic gets series of its own at its first event, if there is room; when the metrics are
// read for the first time, the topics with the most jobs take the places that are left. A topic keeps its series until it is gone, or until it was idle for an
// hour while others had no room. Then its events count as "other". So no counter ever
// decreases: a topic that comes back starts at zero, with series of their own.
//
// A topic whose name is "other" has no series of its own.
//
// Start at Metrics in metrics.go; collect.go reads it.
package topicmetrics
