package beanstalk

import (
	"bytes"
	"math"
	"strings"

	"tarry/job"
)

// verb is a command word.
type verb int

const (
	unknown verb = iota
	put
	peekJob
	peekReady
	peekDelayed
	peekBuried
	reserveTimeout
	reserveJob
	reserve
	deleteJob
	release
	bury
	kick
	kickJob
	touch
	statsJob
	statsTube
	stats
	use
	watch
	ignore
	listTubesWatched
	listTubeUsed
	listTubes
	quit
	pauseTube
	authenticate
	verbs // how many there are
)

// words are tried in this order, and the first that the line starts with is the
// command; the arguments are checked later. So "reservex" is a malformed reserve, and
// "put" without a space is an unknown command.
var words = [...]struct {
	text string
	verb verb
}{
	{"put ", put}, {"peek ", peekJob}, {"peek-ready", peekReady}, {"peek-delayed", peekDelayed}, {"peek-buried", peekBuried},
	{"reserve-with-timeout ", reserveTimeout}, {"reserve-job ", reserveJob}, {"reserve", reserve},
	{"delete ", deleteJob}, {"release ", release}, {"bury ", bury}, {"kick ", kick}, {"kick-job ", kickJob}, {"touch ", touch},
	{"stats-job ", statsJob}, {"stats-tube ", statsTube}, {"stats", stats}, {"use ", use}, {"watch ", watch}, {"ignore ", ignore},
	{"list-tubes-watched", listTubesWatched}, {"list-tube-used", listTubeUsed}, {"list-tubes", listTubes},
	{"quit", quit}, {"pause-tube", pauseTube}, {authWord + " ", authenticate},
}

// authWord is the command that beanstalkd does not have.
const authWord = "auth"

// names are the command words.
var names = namesOfWords()

func namesOfWords() (names [verbs]string) {
	names[unknown] = "unknown"
	for _, w := range words {
		names[w.verb] = strings.TrimSpace(w.text)
	}
	return names
}

// command is one parsed line.
type command struct {
	verb verb
	id   uint64
	pri  uint32
	// seconds is a delay, a pause or a timeout.
	seconds uint32
	ttr     uint32
	// n is the size of a body or a number of jobs.
	n    uint32
	tube string
	// token is what auth sends. It must never be logged.
	token string
	// trailing is set on a put whose line has more after the size.
	trailing bool
}

// parse reads a line without its CRLF. bad means BAD_FORMAT.
func parse(line []byte) (c command, bad bool) {
	if bytes.IndexByte(line, 0) >= 0 {
		return c, true
	}
	rest := line
	for i := range words {
		if after, ok := bytes.CutPrefix(line, []byte(words[i].text)); ok {
			c.verb, rest = words[i].verb, after
			break
		}
	}
	f := fields{rest: rest}
	switch c.verb {
	case unknown, quit:
		return c, false
	case put:
		c.pri, c.seconds, c.ttr, c.n = f.u32(), f.u32(), f.u32(), f.u32()
		c.trailing = len(f.rest) > 0
		return c, f.bad
	case reserveTimeout:
		c.seconds = f.u32()
		return c, f.bad || c.seconds > math.MaxInt32 // what follows is ignored
	case peekJob, reserveJob, deleteJob, kickJob, touch, statsJob:
		c.id = f.u64()
	case release:
		c.id, c.pri, c.seconds = f.u64(), f.u32(), f.u32()
	case bury:
		c.id, c.pri = f.u64(), f.u32()
	case kick:
		c.n = f.count()
		return c, f.bad // what follows is ignored
	case use, watch, ignore, statsTube:
		c.tube = f.tube(f.rest)
		f.rest = nil
	case authenticate:
		c.token = string(f.rest)
		return c, false
	case pauseTube:
		c.tube, c.seconds = f.pausedTube(), f.u32()
	}
	return c, f.bad || len(f.rest) > 0
}

// fields reads the arguments of a line one by one. After a failure bad is set and
// the values mean nothing.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) u32() uint32 { return uint32(f.number(math.MaxUint32)) }
func (f *fields) u64() uint64 { return f.number(math.MaxUint64) }

func (f *fields) spaces() {
	for len(f.rest) > 0 && f.rest[0] == ' ' {
		f.rest = f.rest[1:]
	}
}

// number reads decimal digits after any number of spaces. A sign is an error.
func (f *fields) number(most uint64) uint64 {
	f.spaces()
	v, digits, over := digits(f.rest)
	if digits == 0 || over || v > most {
		f.bad = true
		return 0
	}
	f.rest = f.rest[digits:]
	return v
}

func digits(text []byte) (v uint64, n int, over bool) {
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		d := uint64(text[n] - '0')
		over = over || v > (math.MaxUint64-d)/10
		v = v*10 + d
		n++
	}
	return v, n, over
}

// count reads what C's strtoul reads, which beanstalkd uses for kick alone, and
// keeps 32 bits of it: white space, a sign, digits.
func (f *fields) count() uint32 {
	text := bytes.TrimLeft(f.rest, " \t\n\v\f\r")
	negative := len(text) > 0 && text[0] == '-'
	if negative || len(text) > 0 && text[0] == '+' {
		text = text[1:]
	}
	v, n, over := digits(text)
	if n == 0 || over {
		f.bad = true
		return 0
	}
	if negative {
		v = -v
	}
	return uint32(v)
}

// tube checks a name.
func (f *fields) tube(name []byte) string {
	if !validTube(name) {
		f.bad = true
		return ""
	}
	return string(name)
}

// pausedTube reads a name that another argument follows.
func (f *fields) pausedTube() string {
	f.spaces()
	n := 0
	for n < len(f.rest) && tubeByte(f.rest[n]) {
		n++
	}
	name := f.tube(f.rest[:n])
	f.rest = f.rest[n:]
	return name
}

func validTube[T string | []byte](name T) bool {
	if len(name) == 0 || len(name) > job.MaxNameBytes || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		if !tubeByte(name[i]) {
			return false
		}
	}
	return true
}

func tubeByte(b byte) bool {
	switch {
	case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9':
		return true
	}
	switch b {
	case '-', '+', '/', ';', '.', '$', '_', '(', ')':
		return true
	}
	return false
}
