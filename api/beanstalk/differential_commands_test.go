package beanstalk_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// lasting are tubes that one connection always watches.
var lasting = []string{"one", "two", "three"}

const (
	// brief is removed when it is empty. Its totals are not compared: Tarry keeps them
	// longer.
	brief = "brief"
	// quiet stays, and has jobs only for clients that wait there.
	quiet = "quiet"
)

var hole = regexp.MustCompile(`\{(\d+)\}`)

// fill replaces placeholders in a text by one server's ids.
func (d *comparison) fill(text string, side int) string {
	if !strings.Contains(text, "{") {
		return text
	}
	return hole.ReplaceAllStringFunc(text, func(m string) string {
		n, _ := strconv.Atoi(m[1 : len(m)-1])
		return d.ids[n][side]
	})
}

// command returns a random command, or an invalid one: texts that get one reply each.
func (d *comparison) command(i int) []string {
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

func (d *comparison) line(i int) string {
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

// spoil removes a byte of the command's word or adds one anywhere, but never a digit, which
// would change an id, delay or timeout.
func (d *comparison) spoil(line string) string {
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
		at = min(at, word) // beanstalkd counts some refused commands, by the name's first byte
	}
	add := d.rng.IntN(len(odd))
	return line[:at] + odd[add:add+1] + line[at:]
}

// put has a body of any bytes, and sometimes a wrong end.
func (d *comparison) put(delay string) string {
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
			body[i] = 0 // the rest might look like a placeholder
		}
	}
	end := "\r\n"
	if d.rng.IntN(25) == 0 {
		end = "zz"
	}
	return fmt.Sprintf("put %d %s %d %d\r\n%s%s", d.priority(), delay, 1000+d.rng.IntN(5000), len(body), body, end)
}

// badPut is refused before its body, which is then read as a command.
func (d *comparison) badPut() []string {
	lines := []string{
		"put", "put ", "put x 0 9 2", "put 1 0 9", "put 1 0 9 ", "put 1 -1 9 2", "put 4294967296 0 9 2",
		"put 1 0 4294967296 2", "put 1 0 9 4294967296", "put 1 0 9 2 ", "put 1 0 9 2 2", "put 1 0 9 +2", "put 1 0 9 0x2", "put\t1 0 9 2",
	}
	return []string{lines[d.rng.IntN(len(lines))] + "\r\n", "zz\r\n"}
}

func (d *comparison) tube() string { return lasting[d.rng.IntN(len(lasting))] }

func (d *comparison) anyTube() string {
	switch d.rng.IntN(8) {
	case 0:
		return brief
	case 1:
		return "default"
	}
	return d.tube()
}

// id returns often the id of the job that the connection reserved last, and mostly that of a
// recent one.
func (d *comparison) id(i int) string {
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
func (d *comparison) priority() uint32 {
	return d.fresh(func() uint32 { return d.rng.Uint32() >> d.rng.IntN(20) })
}

// delay returns 0, or a long delay that differs much from all others.
func (d *comparison) delay() string {
	if d.rng.IntN(3) > 0 {
		return "0"
	}
	return fmt.Sprint(d.fresh(func() uint32 { return 1000 * (100 + d.rng.Uint32N(100_000)) }))
}

func (d *comparison) fresh(draw func() uint32) uint32 {
	for {
		if n := draw(); !d.taken[n] {
			d.taken[n] = true
			return n
		}
	}
}
