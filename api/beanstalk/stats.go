package beanstalk

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"tarry/auth"
	"tarry/job/jobpb"
)

// protocolVersion is the release of beanstalkd that this server behaves like. Clients
// check it.
const protocolVersion = "1.13"

// yaml builds a dictionary; keys keep their order.
type yaml struct{ text []byte }

func newYAML() *yaml { return &yaml{[]byte("---\n")} }

func (y *yaml) plain(key, value string) {
	y.text = append(append(append(append(y.text, key...), ": "...), value...), '\n')
}

func (y *yaml) number(key string, value uint64) { y.plain(key, strconv.FormatUint(value, 10)) }

// quoted is for names.
func (y *yaml) quoted(key, value string) { y.plain(key, `"`+value+`"`) }

// states are beanstalkd's names of states.
var states = map[jobpb.State]string{
	jobpb.State_STATE_READY: "ready", jobpb.State_STATE_DELAYED: "delayed",
	jobpb.State_STATE_RESERVED: "reserved", jobpb.State_STATE_DEAD: "buried",
}

func (c *conn) statsJob(id uint64) {
	if id == 0 {
		c.say(notFound)
		return
	}
	j, err := c.job(id)
	if err != nil {
		c.fail(err)
		return
	}
	now := time.Now().UnixMilli()
	var left int64
	switch j.State {
	case jobpb.State_STATE_DELAYED:
		left = j.DueMs - now
	case jobpb.State_STATE_RESERVED:
		left = j.ReservedUntilMs - now
	}
	y := newYAML()
	y.number("id", j.Seq)
	y.quoted("tube", j.Topic)
	y.plain("state", states[j.State])
	y.number("pri", uint64(j.Priority))
	y.number("age", seconds(now-j.CreatedMs))
	y.number("delay", seconds(j.DelayMs))
	y.number("ttr", max(seconds(j.TtrMs), 1))
	y.number("time-left", secondsLeft(left))
	y.number("file", 0)
	y.number("reserves", uint64(j.Reserves))
	y.number("timeouts", uint64(j.Timeouts))
	y.number("releases", uint64(j.Releases))
	y.number("buries", uint64(j.Buries))
	y.number("kicks", uint64(j.Kicks))
	c.document(y.text)
}

// seconds rounds down; a time in the past is 0.
func seconds(ms int64) uint64 { return uint64(max(ms, 0) / 1000) }

// secondsLeft returns how many whole seconds remain of ms. Times are whole milliseconds: the end
// was rounded up, and the present is rounded down.
func secondsLeft(ms int64) uint64 { return seconds(ms - 2) }

func (c *conn) statsTube(name string) {
	refs, named := c.server.tubes.of(name)
	t, err := c.server.reads.Topic(c.ctx, name, false)
	if err != nil {
		c.fail(err)
		return
	}
	if !named && !alive(t) {
		c.say(notFound)
		return
	}
	y := newYAML()
	y.quoted("name", name)
	y.jobs(t)
	y.number("total-jobs", t.Added)
	y.number("current-using", uint64(refs.using))
	y.number("current-watching", uint64(refs.watching))
	y.number("current-waiting", uint64(refs.waiting))
	y.number("cmd-delete", t.Deleted+t.Finished)
	y.number("cmd-pause-tube", t.Pauses)
	y.number("pause", seconds(t.PauseMs))
	y.number("pause-time-left", pauseLeft(t))
	c.document(y.text)
}

func pauseLeft(t *jobpb.Topic) uint64 {
	if t.PausedUntilMs == 0 {
		return 0
	}
	return secondsLeft(t.PausedUntilMs - time.Now().UnixMilli())
}

func (y *yaml) jobs(t *jobpb.Topic) {
	y.number("current-jobs-urgent", t.Urgent)
	y.number("current-jobs-ready", t.Ready)
	y.number("current-jobs-reserved", t.Reserved)
	y.number("current-jobs-delayed", t.Delayed)
	y.number("current-jobs-buried", t.Dead)
}

// counted are the commands that stats has a line for, in its order. It has none
// for reserve-job and kick-job.
var counted = [...]struct {
	key  string
	verb verb
}{
	{"put", put}, {"peek", peekJob}, {"peek-ready", peekReady}, {"peek-delayed", peekDelayed}, {"peek-buried", peekBuried},
	{"reserve", reserve}, {"reserve-with-timeout", reserveTimeout}, {"delete", deleteJob}, {"release", release},
	{"use", use}, {"watch", watch}, {"ignore", ignore}, {"bury", bury}, {"kick", kick}, {"touch", touch},
	{"stats", stats}, {"stats-job", statsJob}, {"stats-tube", statsTube}, {"list-tubes", listTubes},
	{"list-tube-used", listTubeUsed}, {"list-tubes-watched", listTubesWatched}, {"pause-tube", pauseTube},
}

// stats describes the cluster where it is about jobs and tubes, and this process
// where it is about commands and connections.
func (c *conn) stats() {
	s := c.server
	tubes := map[string]bool{}
	for _, name := range c.namedTubes() {
		tubes[name] = true
	}
	var sum jobpb.Topic
	ok := c.topics(func(t *jobpb.Topic) {
		sum.Urgent += t.Urgent
		sum.Ready += t.Ready
		sum.Reserved += t.Reserved
		sum.Delayed += t.Delayed
		sum.Dead += t.Dead
		sum.Timeouts += t.Timeouts
		sum.Added += t.Added
		if alive(t) {
			tubes[t.Name] = true
		}
	})
	if !ok {
		return
	}
	y := newYAML()
	y.jobs(&sum)
	shown := c.showsProcess()
	for _, k := range counted {
		y.number("cmd-"+k.key, shown(s.counts.commands[k.verb].Load()))
	}
	y.number("job-timeouts", sum.Timeouts)
	y.number("total-jobs", sum.Added)
	y.number("max-job-size", uint64(s.MaxJobSize))
	y.number("current-tubes", uint64(len(tubes)))
	y.number("current-connections", shown(uint64(s.connections())))
	y.number("current-producers", shown(uint64(s.counts.producers.Load())))
	y.number("current-workers", shown(uint64(s.counts.workers.Load())))
	y.number("current-waiting", shown(uint64(s.counts.waiting.Load())))
	y.number("total-connections", shown(s.counts.connections.Load()))
	s.process(y, shown)
	c.document(y.text)
}

// showsProcess returns what makes a number of this process 0, which clients expect to be there,
// unless the client may observe.
func (c *conn) showsProcess() func(uint64) uint64 {
	if c.allows(auth.Observe, "") {
		return func(n uint64) uint64 { return n }
	}
	return func(uint64) uint64 { return 0 }
}

// process describes this process. The lines of the binlog are 0: the cluster's log
// replaces it.
func (s *Server) process(y *yaml, shown func(uint64) uint64) {
	y.number("pid", shown(uint64(os.Getpid())))
	y.quoted("version", protocolVersion)
	user, system := processorTime()
	y.plain("rusage-utime", micros(time.Duration(shown(uint64(user)))))
	y.plain("rusage-stime", micros(time.Duration(shown(uint64(system)))))
	y.number("uptime", shown(uint64(time.Since(s.started)/time.Second)))
	y.number("binlog-oldest-index", 0)
	y.number("binlog-current-index", 0)
	y.number("binlog-records-migrated", 0)
	y.number("binlog-records-written", 0)
	y.number("binlog-max-size", 0)
	y.plain("draining", strconv.FormatBool(s.Draining()))
	y.plain("id", s.id)
	host, err := os.Hostname()
	if err != nil || shown(1) == 0 {
		host = "unknown"
	}
	y.quoted("hostname", host)
	y.quoted("os", runtime.GOOS)
	y.quoted("platform", runtime.GOARCH)
}

func micros(d time.Duration) string {
	return fmt.Sprintf("%d.%06d", d/time.Second, d%time.Second/time.Microsecond)
}
