// Package audit writes who did what to a file, one JSON object a line: what was denied, and
// every call that manages, operates or administers. It has no bodies of jobs, tokens or queries.
//
// Writing never delays a call: what the file does not take in time is dropped, and counted.
package audit

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"
)

// Outcomes of a record.
const (
	Done     = "done"
	Failed   = "failed"   // for another reason than rights
	Denied   = "denied"   // nothing was done
	Reported = "reported" // it was done, although it will be denied under enforce
)

// Record is one line.
type Record struct {
	Time      time.Time `json:"time"`
	Principal string    `json:"principal"`        // the id of the token; empty: none was given, or none that is accepted
	Claimed   string    `json:"claimed,omitzero"` // the id in a token that is not accepted: anybody can claim any
	Remote    string    `json:"remote"`           // address and port of the client
	Via       string    `json:"via"`              // http, dashboard or beanstalkd
	Call      string    `json:"call"`             // such as POST /v1/topics/{topic}/purge
	Resource  string    `json:"resource,omitzero"`
	Verb      string    `json:"verb,omitzero"` // that is needed, or is missing
	Outcome   string    `json:"outcome"`
	Code      string    `json:"code,omitzero"`   // of the error
	Reason    string    `json:"reason,omitzero"` // of a denial
	// Times is how often a batch was denied so, if several; the resource is the first of them. Or
	// how many denials of one kind this line stands for (repeats.go); the rest is of the last.
	Times int `json:"times,omitzero"`
}

const (
	// queueLength is how many records wait for the file.
	queueLength = 4096
	// maxText bounds what a client chose in a record.
	maxText = 500
)

// Log writes records to a file. A nil Log writes nothing.
type Log struct {
	path    string
	log     *slog.Logger
	queue   chan Record
	reopen  chan struct{}
	done    sync.WaitGroup
	stop    sync.Once
	quit    chan struct{}
	file    *os.File // of the goroutine that writes
	repeats repeats
	dropped atomic.Uint64
	failed  atomic.Bool // the last write failed

	droppedDesc *prometheus.Desc
}

// Open opens the file, which is made readable to its owner only if it does not exist. The caller
// must Close the log.
func Open(path string, log *slog.Logger) (*Log, error) {
	l := &Log{
		path: path, log: log, queue: make(chan Record, queueLength), reopen: make(chan struct{}, 1), quit: make(chan struct{}),
		droppedDesc: prometheus.NewDesc("tarry_audit_dropped_total", "Lines that are missing in the audit log, because the file could not be written or not fast enough.", nil, nil),
	}
	var err error
	if l.file, err = open(path); err != nil {
		return nil, fmt.Errorf("the audit log (--audit-log): %w", err)
	}
	l.done.Go(l.write)
	return l, nil
}

func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// Add writes a record soon. It does not block.
func (l *Log) Add(r Record) {
	if l == nil {
		return
	}
	r.Time = time.Now().UTC().Truncate(time.Millisecond)
	r.Resource, r.Reason = brief(r.Resource), brief(r.Reason)
	if (r.Outcome == Denied || r.Outcome == Reported) && !l.repeats.pass(r) {
		return
	}
	select {
	case l.queue <- r:
	default:
		l.dropped.Add(1)
	}
}

func brief(text string) string {
	if len(text) <= maxText {
		return text
	}
	return text[:maxText] + "..."
}

// Reopen opens the path again, after the file was renamed.
func (l *Log) Reopen() {
	if l == nil {
		return
	}
	select {
	case l.reopen <- struct{}{}:
	default:
	}
}

// Close writes what was added before, and closes the file. What is added later is dropped.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.stop.Do(func() { close(l.quit) })
	l.done.Wait()
}

// write is the goroutine that writes.
func (l *Log) write() {
	defer func() {
		if err := l.file.Close(); err != nil {
			l.complain(err)
		}
	}()
	tick := time.NewTicker(repeatAfter)
	defer tick.Stop()
	for {
		select {
		case r := <-l.queue:
			l.line(r)
		case <-tick.C:
			l.writeRepeats()
		case <-l.reopen:
			l.openAgain()
		case <-l.quit:
			l.drain()
			l.writeRepeats()
			return
		}
	}
}

// drain writes what waits.
func (l *Log) drain() {
	for {
		select {
		case r := <-l.queue:
			l.line(r)
		default:
			return
		}
	}
}

// writeRepeats writes how often each kind of denial was repeated.
func (l *Log) writeRepeats() {
	now := time.Now().UTC().Truncate(time.Millisecond)
	for _, r := range l.repeats.take() {
		r.Time = now // a log's times do not go back
		l.line(r)
	}
}

func (l *Log) line(r Record) {
	text, err := json.Marshal(r, jsontext.AllowInvalidUTF8(true)) // cut text may end within a character
	if err == nil {
		_, err = l.file.Write(append(escape(text), '\n'))
	}
	if err != nil {
		l.dropped.Add(1)
		l.complain(err)
		return
	}
	l.failed.Store(false)
}

// escape returns JSON in which all characters that do not print are escaped, and not only those
// that JSON demands: a terminal or a viewer may take them for an order, for the end of a line,
// or show the text behind them in another order.
func escape(text []byte) []byte {
	if !bytes.ContainsFunc(text, isHidden) {
		return text
	}
	var safe []byte
	for _, r := range string(text) {
		switch {
		case !isHidden(r):
			safe = utf8.AppendRune(safe, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			safe = fmt.Appendf(safe, `\u%04x\u%04x`, high, low)
		default:
			safe = fmt.Appendf(safe, `\u%04x`, r)
		}
	}
	return safe
}

// isHidden reports whether a character is a control or format character, a separator other than
// the space, none that is assigned, or one that viewers show as nothing, such as a Hangul filler.
func isHidden(r rune) bool {
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// openAgain keeps the present file if the path cannot be opened.
func (l *Log) openAgain() {
	next, err := open(l.path)
	if err != nil {
		l.complain(err)
		return
	}
	if err := l.file.Close(); err != nil {
		l.complain(err)
	}
	l.file = next
	l.log.Info("audit log opened again", "file", l.path)
}

// complain logs the first of several failures.
func (l *Log) complain(err error) {
	if !l.failed.Swap(true) {
		l.log.Error("the audit log cannot be written; its lines are dropped until it can", "error", err)
	}
}

// Describe implements prometheus.Collector.
func (l *Log) Describe(ch chan<- *prometheus.Desc) { ch <- l.droppedDesc }

// Collect implements prometheus.Collector.
func (l *Log) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(l.droppedDesc, prometheus.CounterValue, float64(l.dropped.Load()))
}
