package ui

import (
	"context"
	"strconv"
	"strings"
	"time"

	"tarry/client"
)

// flow is what went in and out of a topic in the last minutes, as far as this node knows.
type flow struct {
	In, Out, Died float64 // jobs in a second, in the last minute
	Lines         *lines  // nil: too few steps
}

// in and out are the rates; 0 while they are not known.
func (f *flow) in() float64 {
	if f == nil {
		return 0
	}
	return f.In
}

func (f *flow) out() float64 {
	if f == nil {
		return 0
	}
	return f.Out
}

// lines are the rates as lines of an SVG of the size lineWidth × lineHeight.
type lines struct {
	In, Out, Died string // the points; In is an area; empty: no job at all
	Peak          float64
	Minutes       int
}

const (
	lineWidth, lineHeight = 120, 28
	lineMargin            = 2 // above and below
	// shownSteps is how many steps of the API have a place in a line.
	shownSteps = 90
)

// flowOf returns the flow of a topic; nil: it is not known. This node is asked, so it costs no
// call to another.
func (q *request) flowOf(topic string) *flow {
	ctx, cancel := context.WithTimeout(q.r.Context(), readLimit)
	defer cancel()
	var r client.Rates
	if f := q.api.get(ctx, "/v1/topics/"+segment(topic)+"/rates", &r); f != nil {
		return nil
	}
	return newFlow(&r)
}

// newFlow makes a flow of the complete steps. Jobs go out when they are finished, deleted or
// expire.
func newFlow(r *client.Rates) *flow {
	n := len(r.Added) - 1 // the last step is under way
	if n < 1 || r.Step.Duration <= 0 {
		return nil
	}
	in, out, died := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		in[i], died[i] = perSecond(r.Added[i], r.Step), perSecond(r.Died[i], r.Step)
		out[i] = perSecond(r.Finished[i]+r.Deleted[i]+r.Expired[i], r.Step)
	}
	minute := int(time.Minute / r.Step.Duration)
	f := &flow{In: recently(in, minute), Out: recently(out, minute), Died: recently(died, minute)}
	if n > 1 {
		f.Lines = newLines(in, out, died, r.Step.Duration)
	}
	return f
}

func perSecond(n uint64, step client.Duration) float64 { return float64(n) / step.Seconds() }

// recently returns the mean of the last values, at most so many.
func recently(values []float64, most int) float64 {
	last := values[max(0, len(values)-most):]
	sum := 0.0
	for _, v := range last {
		sum += v
	}
	return sum / float64(len(last))
}

// newLines returns lines with one scale.
func newLines(in, out, died []float64, step time.Duration) *lines {
	var peak float64
	for i := range in {
		peak = max(peak, in[i], out[i], died[i])
	}
	return &lines{
		In: area(points(in, peak)), Out: points(out, peak), Died: points(died, peak),
		Peak: peak, Minutes: max(1, int(step*time.Duration(len(in))/time.Minute)),
	}
}

// area returns the points of the area below a line.
func area(line string) string {
	if line == "" {
		return ""
	}
	from, _, _ := strings.Cut(line, ",")
	floor := strconv.Itoa(lineHeight - lineMargin)
	return from + "," + floor + " " + line + " " + strconv.Itoa(lineWidth) + "," + floor
}

// points returns the points of a line that ends at the right edge; empty if all are 0.
func points(values []float64, peak float64) string {
	if peak == 0 {
		return ""
	}
	var b strings.Builder
	some := false
	for i, v := range values {
		some = some || v > 0
		x := lineWidth - float64(len(values)-1-i)*lineWidth/(shownSteps-1)
		y := lineHeight - lineMargin - v/peak*(lineHeight-2*lineMargin)
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.FormatFloat(max(x, 0), 'f', 1, 64))
		b.WriteByte(',')
		b.WriteString(strconv.FormatFloat(y, 'f', 1, 64))
	}
	if !some {
		return ""
	}
	return b.String()
}
