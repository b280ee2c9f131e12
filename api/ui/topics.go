package ui

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tarry/client"
)

// topicsPage is how many topics a page has.
const topicsPage = 50

// topicsView is the data of the page of topics.
type topicsView struct {
	Totals client.Stats
	Prefix string
	Sort   string // empty: by name
	Sorts  []sortBy
	Topics []topicRow
	Pager  pager
	// Namespaces are on the first page.
	Namespaces namespacesView
}

// topicRow is one topic with its rates and its late jobs.
type topicRow struct {
	client.Topic
	Flow *flow // nil: not known yet
	Late late
}

// Waiting reports whether jobs are due that a consumer may take.
func (t *topicRow) Waiting() bool { return t.Ready > 0 && !t.Paused }

// showTopics lists the topics, by name or sorted.
func showTopics(q *request) (any, error) {
	v := &topicsView{Prefix: q.value("prefix")}
	if err := q.read("/v1/stats", nil, &v.Totals); err != nil {
		return nil, err
	}
	after := q.value("after")
	if after == "" {
		var err error
		if v.Namespaces, err = q.namespaces(v.Prefix); err != nil {
			return nil, err
		}
	}
	if v.Totals.Topics <= maxSorted {
		v.Sorts = sorts(q.value("sort"), v.Prefix)
		for _, s := range v.Sorts {
			if s.Current && s.order != nil {
				v.Sort = s.Name
				return v, q.sorted(v, s.order)
			}
		}
	}
	found, more, err := q.topicsFrom(v.Prefix, after, topicsPage)
	if err != nil {
		return nil, err
	}
	v.Topics = rowsOf(found)
	if err := q.measure(v.Topics); err != nil {
		return nil, err
	}
	if after != "" {
		v.Pager.First = address(Root, "prefix", v.Prefix)
	}
	if more {
		v.Pager.Next = address(Root, "prefix", v.Prefix, "after", found[len(found)-1].Name)
	}
	return v, nil
}

func rowsOf(topics []client.Topic) []topicRow {
	rows := make([]topicRow, len(topics))
	for i, t := range topics {
		rows[i].Topic = t
	}
	return rows
}

// measure completes the rows that a page shows.
func (q *request) measure(rows []topicRow) (err error) {
	for i := range rows {
		if rows[i].Flow == nil {
			rows[i].Flow = q.flowOf(rows[i].Name)
		}
		if rows[i].Late, err = q.lateOf(&rows[i].Topic); err != nil {
			return err
		}
	}
	return nil
}

// maxSorted is how many topics can be sorted: they are read at once.
const maxSorted = 1000

// sortBy is a column by which topics can be sorted.
type sortBy struct {
	Name, Label string
	Address     string
	Current     bool
	order       func(a, b *topicRow) int // nil: the API's, by name
}

// sorts returns the columns by which topics can be sorted, the largest first.
func sorts(current, prefix string) []sortBy {
	by := func(of func(*topicRow) float64) func(a, b *topicRow) int {
		return func(a, b *topicRow) int { return cmp.Compare(of(b), of(a)) }
	}
	list := []sortBy{
		{Label: "Topic"},
		{Name: "delayed", Label: "Delayed", order: by(func(t *topicRow) float64 { return float64(t.Delayed) })},
		{Name: "ready", Label: "Ready", order: by(func(t *topicRow) float64 { return float64(t.Ready) })},
		{Name: "reserved", Label: "Reserved", order: by(func(t *topicRow) float64 { return float64(t.Reserved) })},
		{Name: "dead", Label: "Dead", order: by(func(t *topicRow) float64 { return float64(t.Dead) })},
		{Name: "due", Label: "Oldest due", order: oldestFirst},
		{Name: "in", Label: "In/s", order: by(func(t *topicRow) float64 { return t.Flow.in() })},
		{Name: "out", Label: "Out/s", order: by(func(t *topicRow) float64 { return t.Flow.out() })},
	}
	known := slices.ContainsFunc(list, func(s sortBy) bool { return s.Name == current })
	for i := range list {
		list[i].Address = address(Root, "prefix", prefix, "sort", list[i].Name)
		list[i].Current = list[i].Name == current || !known && list[i].Name == ""
	}
	return list
}

// oldestFirst sorts by the oldest due job; topics without one are last.
func oldestFirst(a, b *topicRow) int {
	if a.OldestDueAt.IsZero() || b.OldestDueAt.IsZero() {
		return cmp.Compare(b.OldestDueAt.Unix(), a.OldestDueAt.Unix())
	}
	return a.OldestDueAt.Compare(b.OldestDueAt)
}

// sorted reads all topics and shows a part of them in an order.
func (q *request) sorted(v *topicsView, order func(a, b *topicRow) int) error {
	found, _, err := q.topicsFrom(v.Prefix, "", maxSorted)
	if err != nil {
		return err
	}
	rows := rowsOf(found)
	if v.Sort == "in" || v.Sort == "out" {
		for i := range rows {
			rows[i].Flow = q.flowOf(rows[i].Name)
		}
	}
	slices.SortStableFunc(rows, func(a, b topicRow) int { return order(&a, &b) })
	from, err := strconv.Atoi(q.value("from"))
	if err != nil || from < 0 {
		from = 0
	}
	from = min(from, len(rows))
	to := min(from+topicsPage, len(rows))
	v.Topics = rows[from:to]
	if err := q.measure(v.Topics); err != nil {
		return err
	}
	if from > 0 {
		v.Pager.First = address(Root, "prefix", v.Prefix, "sort", v.Sort)
	}
	if to < len(rows) {
		v.Pager.Next = address(Root, "prefix", v.Prefix, "sort", v.Sort, "from", strconv.Itoa(to))
	}
	return nil
}

// topicsFrom returns up to so many topics whose names begin with prefix, behind the name
// after. more reports that there may be others.
func (q *request) topicsFrom(prefix, after string, most int) (found []client.Topic, more bool, err error) {
	if prefix != "" && after < prefix {
		// A listing begins behind a name, and a topic may have just that name.
		t, err := q.topic(prefix)
		if err != nil {
			return nil, false, err
		}
		if exists(t) {
			found = append(found, *t)
		}
		after = prefix
	}
	var page struct {
		Topics []client.Topic `json:"topics"`
		Next   string         `json:"next"`
	}
	query := url.Values{"max": {strconv.Itoa(most)}}
	if after != "" {
		query.Set("cursor", after)
	}
	if err := q.read("/v1/topics", query, &page); err != nil {
		return nil, false, err
	}
	for _, t := range page.Topics {
		if !strings.HasPrefix(t.Name, prefix) {
			return found, false, nil
		}
		found = append(found, t)
	}
	return found, page.Next != "" && len(found) > 0, nil
}

// topic reads the counts of one topic.
func (q *request) topic(name string) (*client.Topic, error) {
	t := &client.Topic{}
	return t, q.read("/v1/topics/"+segment(name), nil, t)
}

// exists reports whether the cluster knows a topic: the counts of any other are zero.
func exists(t *client.Topic) bool {
	return t.Added > 0 || t.Paused || t.SettingsRevision > 0 || t.Delayed+t.Ready+t.Reserved+t.Dead+t.Retained > 0
}

// pauseTopic stops the delivery of a topic's jobs, for a number of seconds or until it is
// resumed.
func pauseTopic(q *request) (*outcome, error) {
	topic, err := q.required("topic")
	if err != nil {
		return nil, err
	}
	in := map[string]any{}
	if seconds, ok, err := q.number("for", "seconds"); err != nil {
		return nil, err
	} else if ok {
		in["for"] = seconds
	}
	if err := q.do("/v1/topics/"+segment(topic)+"/pause", in, nil); err != nil {
		return nil, err
	}
	return &outcome{to: q.back(address(Root+"topic", "topic", topic)), flash: "Topic " + topic + " is paused."}, nil
}

// resumeTopic ends a topic's pause.
func resumeTopic(q *request) (*outcome, error) {
	topic, err := q.required("topic")
	if err != nil {
		return nil, err
	}
	if err := q.do("/v1/topics/"+segment(topic)+"/resume", nil, nil); err != nil {
		return nil, err
	}
	return &outcome{to: q.back(address(Root+"topic", "topic", topic)), flash: "Topic " + topic + " is resumed."}, nil
}
