package beanstalk_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// lasting are tubes that one connection watches all the time.
var lasting = []string{"one", "two", "three"}

const (
	// brief comes and goes. Its totals are not compared: Tarry remembers them for
	// longer.
	brief = "brief"
	// quiet lasts, and has jobs only for those that wait there.
	quiet = "quiet"
)

var hole = regexp.MustCompile(`\{(\d+)\}`)

// fill puts one server's ids into a text.
func (d *duel) fill(text string, side int) string {
	if !strings.Contains(text, "{") {
		return text
	}
	return hole.ReplaceAllStringFunc(text, func(m string) string {
		n, _ := strconv.Atoi(m[1 : len(m)-1])
		return d.ids[n][side]
	})
}

// command is a random command, or one that is wrong: the texts that are answered
// once each.
func (d *duel) command(i int) []string {
	switch n := d.rng.IntN(100); {
	case n < 22:
		return []string{d.put(d.delay())}
	case n < 25:
		return d.badPut()
	case n < 27:
		return []string{strings.Repeat("y", []int{222, 300, 500}[d.rng.IntN(3)]) + "\r\n"}
	case n < 35:
		return []string{d.spoil(d.line(i)) + "\r\n"}
	}
	return []string{d.line(i) + "\r\n"}
}

func (d *duel) line(i int) string {
	tube, id := d.anyTube(), d.id(i)
	lines := []string{
		"reserve-with-timeout 0", "reserve-with-timeout 0", "reserve-with-timeout 0", "reserve-job " + id,
		"delete " + id, "delete " + id, "touch " + id,
		fmt.Sprintf("release %s %d %s", id, d.priority(), d.delay()), fmt.Sprintf("release %s %d 0", id, d.priority()),
		fmt.Sprintf("bury %s %d", id, d.priority()), fmt.Sprintf("bury %s %d", id, d.priority()),
		fmt.Sprint("kick ", d.rng.IntN(4)), "kick-job " + id,
		"peek " + id, "peek-ready", "peek-delayed", "peek-buried",
		"stats-job " + id, "stats-job " + id, "stats-tube " + tube, "stats",
		"use " + tube, "watch " + tube, "ignore " + tube, "watch " + tube,
		"list-tubes", "list-tube-used", "list-tubes-watched",
		"pause-tube " + d.tube() + " 1000", "pause-tube " + d.tube() + " 0", "stats-tube nobody", "pause-tube nobody 0",
	}
	return lines[d.rng.IntN(len(lines))]
}

// spoil leaves out a byte of the command's word or adds one anywhere, but never a
// digit: that would make another id, delay or timeout of it.
func (d *duel) spoil(line string) string {
	word := strings.IndexAny(line+" ", " ")
	if d.rng.IntN(2) == 0 {
		at := d.rng.IntN(word)
		return line[:at] + line[at+1:]
	}
	const odd = " \t\x00\nx-+*"
	at := d.rng.IntN(len(line) + 1)
	if open := strings.IndexByte(line, '{'); open >= 0 && at > open {
		at = len(line)
	}
	switch {
	case strings.HasPrefix(line, "reserve-with-timeout"):
		at = min(at, word) // beanstalkd is strict about the timeout only since 1.13
	case strings.HasPrefix(line, "pause-tube"):
		at = min(at, word) // beanstalkd counts some that it refuses, by the name's first byte
	}
	add := d.rng.IntN(len(odd))
	return line[:at] + odd[add:add+1] + line[at:]
}

// put has a body of any bytes, and sometimes a wrong end.
func (d *duel) put(delay string) string {
	body := make([]byte, d.rng.IntN(60))
	switch d.rng.IntN(40) {
	case 0:
		body = make([]byte, 65535)
	case 1:
		body = make([]byte, 65536)
	case 2:
		body = make([]byte, d.rng.IntN(20000))
	}
	for i := range body {
		if body[i] = byte(d.rng.Uint32()); body[i] == '{' {
			body[i] = 0 // what follows might look like an id to fill in
		}
	}
	end := "\r\n"
	if d.rng.IntN(25) == 0 {
		end = "zz"
	}
	return fmt.Sprintf("put %d %s %d %d\r\n%s%s", d.priority(), delay, 1000+d.rng.IntN(5000), len(body), body, end)
}

// badPut is refused before its body, which is then taken for a command.
func (d *duel) badPut() []string {
	lines := []string{
		"put", "put ", "put x 0 9 2", "put 1 0 9", "put 1 0 9 ", "put 1 -1 9 2", "put 4294967296 0 9 2",
		"put 1 0 4294967296 2", "put 1 0 9 4294967296", "put 1 0 9 2 ", "put 1 0 9 2 2", "put 1 0 9 +2", "put 1 0 9 0x2", "put\t1 0 9 2",
	}
	return []string{lines[d.rng.IntN(len(lines))] + "\r\n", "zz\r\n"}
}

func (d *duel) tube() string { return lasting[d.rng.IntN(len(lasting))] }

func (d *duel) anyTube() string {
	switch d.rng.IntN(8) {
	case 0:
		return brief
	case 1:
		return "default"
	}
	return d.tube()
}

// id is often that of the job that the connection reserved last, and mostly that
// of one that is not old.
func (d *duel) id(i int) string {
	n := len(d.ids)
	switch {
	case n == 0 || d.rng.IntN(30) == 0:
		return []string{"0", "1000000000000000000", "18446744073709551615", "18446744073709551616", "-1", "x"}[d.rng.IntN(6)]
	case d.rng.IntN(10) == 0:
		return fmt.Sprintf("{%d}", d.rng.IntN(n))
	case d.rng.IntN(3) == 0:
		return fmt.Sprintf("{%d}", d.last[i])
	}
	return fmt.Sprintf("{%d}", n-1-d.rng.IntN(min(n, 12)))
}

// priority differs each time, so that the order of jobs is the same everywhere:
// within one priority it is not.
func (d *duel) priority() uint32 {
	return d.fresh(func() uint32 { return d.rng.Uint32() >> d.rng.IntN(20) })
}

// delay is 0 or far away, and far from all others.
func (d *duel) delay() string {
	if d.rng.IntN(3) > 0 {
		return "0"
	}
	return fmt.Sprint(d.fresh(func() uint32 { return 1000 * (100 + d.rng.Uint32N(100_000)) }))
}

func (d *duel) fresh(draw func() uint32) uint32 {
	for {
		if n := draw(); !d.taken[n] {
			d.taken[n] = true
			return n
		}
	}
}
