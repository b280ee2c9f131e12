package rates

import (
	"time"

	"tarry/job"
)

// Series is what happened to the jobs of a topic, step by step.
type Series struct {
	// Start is when the first sample begins; zero if there are none.
	Start time.Time
	// Samples are the counts of events in each step, the last one of the step under way.
	// There are at most Steps+1, and fewer if the node has recorded for a shorter time.
	// There are none if the node has recorded nothing of the topic; see MaxTopics.
	Samples []job.TopicEvents
}

// PerSecond returns the mean rates of an event, in events a second, one for each complete
// step.
func (s Series) PerSecond(e job.TopicEvent) []float64 {
	if len(s.Samples) == 0 {
		return nil
	}
	rates := make([]float64, len(s.Samples)-1)
	for i := range rates {
		rates[i] = float64(s.Samples[i][e]) / Step.Seconds()
	}
	return rates
}

// Sum returns the counts of the last complete steps, n at most, and of the one under way.
func (s Series) Sum(n int) (sum job.TopicEvents) {
	for i := max(0, len(s.Samples)-1-n); i < len(s.Samples); i++ {
		sum.Add(&s.Samples[i])
	}
	return sum
}

// Together returns the sums of several series. One begins when the first of them does: what another does
// not know of counts as nothing.
func Together(list []Series) (sum Series) {
	var end time.Time
	for _, s := range list {
		if len(s.Samples) == 0 {
			continue
		}
		if sum.Start.IsZero() || s.Start.Before(sum.Start) {
			sum.Start = s.Start
		}
		if last := s.Start.Add(time.Duration(len(s.Samples)) * Step); last.After(end) {
			end = last
		}
	}
	if sum.Start.IsZero() {
		return sum
	}
	if first := end.Add(-window * Step); sum.Start.Before(first) {
		sum.Start = first
	}
	sum.Samples = make([]job.TopicEvents, end.Sub(sum.Start)/Step)
	for _, s := range list {
		for i := range s.Samples {
			if at := int(s.Start.Sub(sum.Start)/Step) + i; at >= 0 {
				sum.Samples[at].Add(&s.Samples[i])
			}
		}
	}
	return sum
}
