// Package rates keeps how many jobs of each topic were added, delivered, finished and so
// on in each step of 10 s of the last 15 minutes, in memory.
//
// A node's Recorder gets the events of every entry of the log that the node applies, with
// the time of the entry. So each node has the same counts, whichever node leads, and a
// node that is behind fills in the steps in which things happened. A node that starts
// knows nothing of the time before.
//
// Readers ask a node's queue: api.Queue has Rates(topic), and GET /v1/topics/{topic}/rates,
// GET /v1/rates and Rates of the Go client return the same. A Series is what a small line chart needs: its
// samples are counts per step, oldest first, the last one of the step under way.
//
//	s := queue.Rates("mail")
//	in := s.PerSecond(job.TopicAdded) // one value for each complete step
//	out := s.PerSecond(job.TopicFinished)
//
// At most MaxTopics topics have a series of their own, 2.5 kB each; see Recorder.
package rates
