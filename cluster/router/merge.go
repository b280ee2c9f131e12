package router

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
)

// sumTopics returns the counts of a topic. Its settings are those of the shard that knows the newest.
func sumTopics(of []*jobpb.Topic) *jobpb.Topic {
	var sum *jobpb.Topic
	for _, t := range of {
		switch {
		case t == nil:
		case sum == nil:
			sum = proto.CloneOf(t)
		default:
			addTopic(sum, t)
		}
	}
	return sum
}

func addTopic(sum, t *jobpb.Topic) {
	for _, count := range []struct{ to, more *uint64 }{
		{&sum.Delayed, &t.Delayed}, {&sum.Ready, &t.Ready}, {&sum.Reserved, &t.Reserved}, {&sum.Dead, &t.Dead}, {&sum.Retained, &t.Retained},
		{&sum.Added, &t.Added}, {&sum.Finished, &t.Finished}, {&sum.Deleted, &t.Deleted}, {&sum.Timeouts, &t.Timeouts},
		{&sum.Died, &t.Died}, {&sum.Expired, &t.Expired}, {&sum.Urgent, &t.Urgent},
	} {
		*count.to += *count.more
	}
	if sum.OldestDueMs == 0 || t.OldestDueMs != 0 && t.OldestDueMs < sum.OldestDueMs {
		sum.OldestDueMs = t.OldestDueMs
	}
	// A pause is that of all shards. The rate allows a job as soon as one shard does.
	sum.PausedUntilMs, sum.PauseMs, sum.Pauses = max(sum.PausedUntilMs, t.PausedUntilMs), max(sum.PauseMs, t.PauseMs), max(sum.Pauses, t.Pauses)
	sum.ThrottledUntilMs = min(sum.ThrottledUntilMs, t.ThrottledUntilMs)
	if t.Settings.GetRevision() > sum.Settings.GetRevision() {
		sum.Settings = t.Settings
	}
}

// topicsByName returns the first topics by name. The first of all shards are among the first of each.
func topicsByName(pages [][]*jobpb.Topic, most int) []*jobpb.Topic {
	sums := make(map[string]*jobpb.Topic)
	for _, page := range pages {
		for _, t := range page {
			if sum := sums[t.Name]; sum != nil {
				addTopic(sum, t)
			} else {
				sums[t.Name] = t
			}
		}
	}
	names := slices.Sorted(maps.Keys(sums))
	topics := make([]*jobpb.Topic, 0, min(len(names), most))
	for _, name := range names[:min(len(names), most)] {
		topics = append(topics, sums[name])
	}
	return topics
}

// sumTotals returns the sums. How many topics there are is not known without their names: at least as many as in
// the shard that has most.
func sumTotals(of []*jobpb.Totals) *jobpb.Totals {
	sum := &jobpb.Totals{}
	for _, t := range of {
		sum.Topics = max(sum.Topics, t.GetTopics())
		sum.Delayed += t.GetDelayed()
		sum.Ready += t.GetReady()
		sum.Reserved += t.GetReserved()
		sum.Dead += t.GetDead()
		sum.Retained += t.GetRetained()
	}
	return sum
}

// schedulesByName returns the first schedules by name. A page that ended before it had as many as
// asked for, because they are large, has left out all that come behind it.
func schedulesByName(pages [][]*jobpb.ScheduleInfo, most int) (merged []*jobpb.ScheduleInfo) {
	size := func(s *jobpb.ScheduleInfo) int { return s.Schedule.SizeVT() + s.State.SizeVT() }
	end, ends := "", false
	for _, page := range pages {
		merged = append(merged, page...)
		bytes := 0
		for _, s := range page {
			bytes += size(s)
		}
		if len(page) > 0 && bytes > job.MaxScheduleListBytes {
			if last := page[len(page)-1].Name; !ends || last < end {
				end, ends = last, true
			}
		}
	}
	slices.SortFunc(merged, func(a, b *jobpb.ScheduleInfo) int { return cmp.Compare(a.Name, b.Name) })
	bytes := 0
	for i, s := range merged {
		if i == most || bytes > job.MaxScheduleListBytes || ends && s.Name > end {
			return merged[:i]
		}
		bytes += size(s)
	}
	return merged
}

func sumForecasts(of []*jobpb.Forecast) *jobpb.Forecast {
	sum := &jobpb.Forecast{}
	for _, f := range of {
		if len(sum.Jobs) == 0 {
			sum.Jobs = make([]uint64, len(f.GetJobs()))
		}
		for i, n := range f.GetJobs() {
			sum.Jobs[i] += n
		}
		sum.Before += f.GetBefore()
		sum.After += f.GetAfter()
		sum.Overdue += f.GetOverdue()
	}
	return sum
}

// mergeDueTopics returns the topics of which most jobs are due. One that is in more than job.MaxDueTopics
// of a shard may count too few jobs, or miss.
func mergeDueTopics(of []*jobpb.DueTopics, most int) *jobpb.DueTopics {
	sum := &jobpb.DueTopics{}
	jobs := make(map[string]uint64)
	for _, d := range of {
		sum.Jobs += d.GetJobs()
		for _, t := range d.GetTopics() {
			jobs[t.Topic] += t.Jobs
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(jobs)) {
		sum.Topics = append(sum.Topics, &jobpb.DueTopic{Topic: topic, Jobs: jobs[topic]})
	}
	slices.SortStableFunc(sum.Topics, func(a, b *jobpb.DueTopic) int { return cmp.Compare(b.Jobs, a.Jobs) })
	sum.Topics = sum.Topics[:min(len(sum.Topics), most)]
	return sum
}

// mergeDeadReasons returns the reasons that most dead jobs have. The reply is incomplete if that of
// a shard is, or if a shard has more than it listed.
func mergeDeadReasons(of []*jobpb.DeadReasons, query *jobpb.DeadReasonsQuery) *jobpb.DeadReasons {
	sum := &jobpb.DeadReasons{}
	var groups [][]*jobpb.DeadGroup
	for _, d := range of {
		sum.Jobs += d.GetJobs()
		sum.Reasons = max(sum.Reasons, d.GetReasons())
		sum.Incomplete = sum.Incomplete || d.GetIncomplete() || d.GetMore()
		sum.More = sum.More || d.GetMore()
		groups = append(groups, d.GetGroups())
	}
	sum.Groups = sumGroups(groups, func(g *jobpb.DeadGroup) string { return g.Reason })
	if query.GetTopic() == "" {
		sum.Reasons = max(sum.Reasons, uint64(len(sum.Groups)))
	}
	if most := int(query.GetMax()); len(sum.Groups) > most {
		sum.Groups, sum.More = sum.Groups[:most], true
	}
	return sum
}

// mergeDeadTopics returns the topics that most dead jobs with a reason are in.
func mergeDeadTopics(of []*jobpb.DeadTopics, most int) *jobpb.DeadTopics {
	sum := &jobpb.DeadTopics{}
	var groups [][]*jobpb.DeadGroup
	for _, d := range of {
		sum.Jobs += d.GetJobs()
		sum.Topics = max(sum.Topics, d.GetTopics())
		sum.Incomplete = sum.Incomplete || d.GetIncomplete() || d.GetTopics() > uint64(len(d.GetGroups()))
		groups = append(groups, d.GetGroups())
	}
	sum.Groups = sumGroups(groups, func(g *jobpb.DeadGroup) string { return g.Topic })
	sum.Topics = max(sum.Topics, uint64(len(sum.Groups)))
	sum.Groups = sum.Groups[:min(len(sum.Groups), most)]
	return sum
}

// sumGroups returns the groups of all shards, by the number of their jobs, the most first. Those with
// the same key are one.
func sumGroups(lists [][]*jobpb.DeadGroup, key func(*jobpb.DeadGroup) string) (groups []*jobpb.DeadGroup) {
	sums := make(map[string]*jobpb.DeadGroup)
	for _, list := range lists {
		for _, g := range list {
			sum := sums[key(g)]
			if sum == nil {
				sums[key(g)] = g
				continue
			}
			sum.Jobs += g.Jobs
			sum.Topics = max(sum.Topics, g.Topics)
			if g.FirstDiedMs < sum.FirstDiedMs {
				sum.FirstId, sum.FirstDiedMs = g.FirstId, g.FirstDiedMs
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(sums)) {
		groups = append(groups, sums[k])
	}
	slices.SortStableFunc(groups, func(a, b *jobpb.DeadGroup) int { return cmp.Compare(b.Jobs, a.Jobs) })
	return groups
}
