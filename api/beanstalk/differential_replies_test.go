package beanstalk_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
)

// wire is one connection.
type wire struct {
	net.Conn
	in *bufio.Reader
}

func dialWire(addr string) (*wire, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &wire{c, bufio.NewReader(c)}, nil
}

// reply is a line in words and, for some, a body.
type reply struct {
	line []string
	body []byte
}

// bodyAt has the index of the word of a reply that is the length of a body.
var bodyAt = map[string]int{"RESERVED": 2, "FOUND": 2, "OK": 1}

func (c *wire) reply() (reply, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return reply{}, fmt.Errorf("%w after %q", err, line)
	}
	head, whole := strings.CutSuffix(line, "\r\n")
	r := reply{line: strings.Split(head, " ")}
	at, has := bodyAt[r.line[0]]
	if !whole || has && len(r.line) != at+1 {
		return r, fmt.Errorf("%q is no reply", line)
	}
	if !has {
		return r, nil
	}
	n, err := strconv.Atoi(r.line[at])
	if err != nil {
		return r, fmt.Errorf("%q has no length: %w", line, err)
	}
	r.body = make([]byte, n+2)
	if _, err := io.ReadFull(c.in, r.body); err != nil {
		return r, err
	}
	if r.body, whole = bytes.CutSuffix(r.body, []byte("\r\n")); !whole {
		return r, fmt.Errorf("the body after %q has no CRLF", line)
	}
	return r, nil
}

// id returns the job's id, if the reply has one.
func (r *reply) id() string {
	if len(r.line) == 1 {
		return ""
	}
	return r.line[1]
}

// name replaces a server's id by the number of the job.
func (r *reply) name(jobs map[string]int) {
	switch r.line[0] {
	case "INSERTED", "RESERVED", "FOUND":
		if len(r.line) > 1 {
			r.line[1] = number(jobs, r.line[1])
		}
	case "OK":
		const key = "---\nid: "
		if rest, ok := bytes.CutPrefix(r.body, []byte(key)); ok {
			id, rest, _ := bytes.Cut(rest, []byte("\n"))
			r.body = fmt.Appendf(nil, "%s%s\n%s", key, number(jobs, string(id)), rest)
		}
		r.line = r.line[:1] // ids, times and counts change the length
	}
}

func number(jobs map[string]int, id string) string {
	if n, ok := jobs[id]; ok {
		return fmt.Sprint("job ", n)
	}
	return "unknown id " + id
}

// diff returns how two replies to a command differ; empty: they do not.
func diff(text string, real, tarry reply) string {
	if !slices.Equal(real.line, tarry.line) {
		return fmt.Sprintf("beanstalkd: %q, Tarry: %q", real.line, tarry.line)
	}
	switch {
	case real.line[0] != "OK":
		if !bytes.Equal(real.body, tarry.body) {
			return fmt.Sprintf("%q with the body %q by beanstalkd and %q by Tarry", real.line, real.body, tarry.body)
		}
		return ""
	case bytes.HasPrefix(real.body, []byte("---\n- ")):
		a, b := lines(real.body), lines(tarry.body)
		slices.Sort(a) // the order of tubes is not the protocol's
		slices.Sort(b)
		if !slices.Equal(a, b) {
			return fmt.Sprintf("the list %q by beanstalkd and %q by Tarry", a, b)
		}
		return ""
	}
	return diffDictionaries(text, lines(real.body), lines(tarry.body))
}

func lines(body []byte) []string { return strings.Split(string(body), "\n") }

// own are values that differ between servers. cmd-stats also counts this test's polls, and
// total-connections the ones for the servers to start.
var own = []string{
	"file", "cmd-stats", "total-connections", "pid", "version", "rusage-utime", "rusage-stime", "uptime",
	"binlog-oldest-index", "binlog-current-index", "binlog-records-migrated", "binlog-records-written", "binlog-max-size",
	"id", "hostname", "os", "platform",
}

// outlive are values of a tube that Tarry keeps after its last job.
var outlive = []string{"total-jobs", "cmd-delete", "cmd-pause-tube"}

// passing are values that count time.
var passing = []string{"age", "time-left", "pause-time-left"}

// slack is how many seconds such values may differ.
const slack = 30

// diffDictionaries compares the keys, their order, and what must be equal.
func diffDictionaries(text string, real, tarry []string) string {
	if len(real) != len(tarry) {
		return fmt.Sprintf("beanstalkd: %q, Tarry: %q", real, tarry)
	}
	for i := range real {
		key, want, _ := strings.Cut(real[i], ": ")
		tarryKey, have, _ := strings.Cut(tarry[i], ": ")
		switch {
		case key != tarryKey:
			return fmt.Sprintf("the key %q by beanstalkd and %q by Tarry", key, tarryKey)
		case key == "id" && strings.HasPrefix(want, "job ") && want != have:
		case slices.Contains(own, key), text == "stats-tube "+brief+"\r\n" && slices.Contains(outlive, key):
			continue
		case slices.Contains(passing, key):
			a, err1 := strconv.Atoi(want)
			b, err2 := strconv.Atoi(have)
			if err1 == nil && err2 == nil && max(a, b)-min(a, b) <= slack {
				continue
			}
		case strings.Trim(want, `"`) == strings.Trim(have, `"`): // quotes came with 1.13
			continue
		}
		return fmt.Sprintf("%s is %q by beanstalkd and %q by Tarry", key, want, have)
	}
	return ""
}
