package ui

import (
	"net/url"
	"strconv"

	"tarry/client"
)

const (
	// maxTopicsRead is how many topics one page looks at; a link leads to those behind them.
	maxTopicsRead = 5000
	// maxTopicsListed is how many topics one page lists jobs of.
	maxTopicsListed = 20
)

// topicsWith returns up to maxTopicsListed topics behind the name after whose count is not zero.
// next is where to go on; empty: there are no more.
func (q *request) topicsWith(after string, count func(*client.Topic) uint64) (found []client.Topic, next string, err error) {
	for looked := 0; looked < maxTopicsRead; looked += maxSorted {
		topics, more, err := q.topicsFrom("", after, maxSorted)
		if err != nil {
			return nil, "", err
		}
		for i := range topics {
			if len(found) == maxTopicsListed {
				return found, after, nil
			}
			after = topics[i].Name
			if count(&topics[i]) > 0 {
				found = append(found, topics[i])
			}
		}
		if !more {
			return found, "", nil
		}
	}
	return found, after, nil
}

// firstJobs reads up to most jobs of a topic in a state, in the order of the API.
func (q *request) firstJobs(topic, state string, most int) ([]client.Job, error) {
	var page struct {
		Jobs []client.Job `json:"jobs"`
	}
	err := q.read("/v1/topics/"+segment(topic)+"/jobs", url.Values{"state": {state}, "max": {strconv.Itoa(most)}}, &page)
	return page.Jobs, err
}
