package events

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"tarry/job"
)

const (
	// capacity is the number of events that a Log keeps.
	capacity = 1000
	// maxTextBytes and maxDetails bound one event.
	maxTextBytes = 500
	maxDetails   = 8
)

// The kinds of events.
const (
	member  = "member"
	leader  = "leader"
	clock   = "clock"
	disk    = "disk"
	version = "version"
	drain   = "drain"
	backup  = "backup"
	cert    = "certificate"
	gossip  = "gossip"
)

// Kinds are all kinds of events.
var Kinds = []string{member, leader, clock, disk, version, drain, backup, cert, gossip}

// kinds has the messages that are events, each up to its first semicolon.
var kinds = map[string]string{
	"in no cluster yet":                                 member,
	"started a new cluster":                             member,
	"member is alive":                                   member,
	"member is back":                                    member,
	"member has stopped or cannot be reached":           member,
	"member has left the cluster":                       member,
	"member has a new address":                          member,
	"node joined":                                       member,
	"a node may not join":                               member,
	"node uses an invitation":                           member,
	"node came back without its data":                   member,
	"server removed":                                    member,
	"another node has this node's id":                   member,
	"this node was removed from the cluster":            member,
	"the configuration does not follow the members yet": member,
	"refused to gossip with a node of another cluster":  member,

	"leader changed":       leader,
	"leading":              leader,
	"not leading any more": leader,
	"not yet an established leader, trying again":   leader,
	"the leader does not respond":                   leader,
	"the leader's process has ended":                leader,
	"transferring leadership":                       leader,
	"could not transfer leadership":                 leader,
	"could not transfer leadership before stopping": leader,

	"clocks are off":                                       clock,
	"setting the queue's clock back":                       clock,
	"the clocks of all members that reply are right again": clock,

	"the disk is low":                               disk,
	"the disk has enough free space again":          disk,
	"removed the ballast, because the disk is full": disk,
	"cannot measure the disk's free space":          disk,
	"refusing adds":                                 disk,
	"accepting adds again":                          disk,

	"the cluster version was raised": version,

	"this node is drained":              drain,
	"this node is not drained any more": drain,

	"a backup begins":      backup,
	"a backup is complete": backup,
	"receiving a backup that is to replace the state": backup,
	"a backup replaces the state":                     backup,
	"a backup replaced the state":                     backup,
	"a backup did not replace the state":              backup,
	"a scheduled backup is complete":                  backup,
	"a scheduled backup is whole before its turn":     backup,
	"a scheduled backup failed":                       backup,
	"removed an old scheduled backup":                 backup,
	"cannot remove old scheduled backups":             backup,
	"cannot use the place for scheduled backups":      backup,

	"closes a connection to a node, because its certificate is not valid any more":        cert,
	"connects to a node without TLS, because TLS failed and --cluster-tls-mode is prefer": cert,

	"gossip keys changed":                            gossip,
	"cannot fetch the newer gossip keys of a member": gossip,
	"cannot gossip with a node because its keys differ from this node's, or only one of the two has keys": gossip,
}

// Log keeps the last events. Its methods may be called from many goroutines.
type Log struct {
	mu   sync.Mutex
	kept []job.ClusterEvent // by number; some are missing between them
	last uint64
	// count has the number of events kept of each kind.
	count map[string]int
}

// NewLog returns a Log without events.
func NewLog() *Log { return &Log{count: map[string]int{}} }

// After returns the events after a number, oldest first. A number that is not reached yet is
// one of an earlier run of the process: then all events are new.
func (l *Log) After(number uint64) []job.ClusterEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := 0
	if number <= l.last {
		first, _ = slices.BinarySearchFunc(l.kept, number+1, func(e job.ClusterEvent, n uint64) int { return cmp.Compare(e.Number, n) })
	}
	return slices.Clone(l.kept[first:])
}

func (l *Log) add(e job.ClusterEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	e.Number = l.last
	if len(l.kept) == capacity {
		l.dropOne()
	}
	l.kept = append(l.kept, e)
	l.count[e.Kind]++
}

// dropOne drops the oldest event of the kind that has the most, so that one kind which repeats
// leaves the others alone. l.mu is held.
func (l *Log) dropOne() {
	most := 0
	for _, n := range l.count {
		most = max(most, n)
	}
	at := slices.IndexFunc(l.kept, func(e job.ClusterEvent) bool { return l.count[e.Kind] == most })
	l.count[l.kept[at].Kind]--
	l.kept = slices.Delete(l.kept, at, at+1)
}

// Logger returns a logger that writes to of and keeps events.
func (l *Log) Logger(of *slog.Logger) *slog.Logger { return slog.New(handler{of.Handler(), l}) }

// handler keeps the records that are events before it passes them on.
type handler struct {
	slog.Handler
	log *Log
}

// Enabled implements slog.Handler. Events are of level info or above.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if kind := kindOf(r.Message); kind != "" {
		h.log.add(eventOf(kind, r))
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.log}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.log}
}

func kindOf(message string) string {
	start, _, _ := strings.Cut(message, ";")
	return kinds[start]
}

func eventOf(kind string, r slog.Record) job.ClusterEvent {
	e := job.ClusterEvent{At: r.Time, Kind: kind, Level: strings.ToLower(r.Level.String()), Text: bounded(r.Message)}
	r.Attrs(func(a slog.Attr) bool {
		e.Details = append(e.Details, job.EventDetail{Name: bounded(a.Key), Value: bounded(a.Value.Resolve().String())})
		return len(e.Details) < maxDetails
	})
	return e
}

// bounded returns the beginning of a text, as valid UTF-8.
func bounded(text string) string {
	if len(text) <= maxTextBytes {
		return strings.ToValidUTF8(text, "?")
	}
	cut := maxTextBytes
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.ToValidUTF8(text[:cut], "?") + "..."
}
