package api

import (
	"strconv"

	"tarry/job"
	"tarry/rates"
)

// topicRates handles GET /v1/topics/{topic}/rates.
func (s *server) topicRates(x *call) error {
	topic, err := x.pathTopic()
	if err != nil {
		return err
	}
	return x.rates(topic, s.Queue.Rates(topic))
}

// rates handles GET /v1/rates.
func (s *server) rates(x *call) error { return x.rates("", s.Queue.TotalRates()) }

// rates responds with a series, of all topics if topic is empty.
func (x *call) rates(topic string, series rates.Series) error {
	if err := x.claim(answerOverhead + maxSampleBytes*int64(len(series.Samples))); err != nil {
		return err
	}
	w := &x.json
	w.success()
	w.textUnlessEmpty("topic", topic)
	if len(series.Samples) > 0 {
		w.timestamp("start", series.Start.UnixMilli())
	}
	w.seconds("step", rates.Step.Milliseconds())
	for e := range (job.TopicEvents{}) {
		w.beginList(job.TopicEvent(e).String())
		for i := range series.Samples {
			w.comma()
			w.b = strconv.AppendUint(w.b, series.Samples[i][e], 10)
		}
		w.endList()
	}
	w.endObject()
	return nil
}

// maxSampleBytes is how many bytes the counts of a step take in a response, about.
const maxSampleBytes = int64(len(job.TopicEvents{})) * 8
