package conformance

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Case is one story of a few connections.
type Case struct {
	Name   string
	Script string
	// Tarry is what Tarry does where it differs on purpose; docs/beanstalkd.md
	// names the case.
	Tarry string
	// Since is the first release of beanstalkd that behaves so; empty: all.
	Since string
}

// Target is a server under test.
type Target struct {
	Addr  string
	Tarry bool
	// Version of a real beanstalkd, such as "1.12".
	Version string
}

// Run runs all cases, each on a server without jobs and known connections.
func Run(t *testing.T, target Target) {
	for _, c := range Cases() {
		t.Run(strings.ReplaceAll(c.Name, " ", "_"), func(t *testing.T) {
			if !target.Tarry && c.Since > target.Version {
				t.Skipf("beanstalkd does so since %s; this is %s", c.Since, target.Version)
			}
			require.NoError(t, clean(target.Addr))
			text := c.Script
			if target.Tarry && c.Tarry != "" {
				text = c.Tarry
			}
			s := &script{t: t, addr: target.Addr, conns: map[string]*wire{}, bound: map[string]string{}}
			s.run(text)
		})
	}
}

// clean deletes every job, so that each case starts from an empty server.
func clean(addr string) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	body, err := c.ask("list-tubes\r\n")
	if err != nil {
		return err
	}
	for _, tube := range strings.Split(strings.TrimSuffix(body, "\n"), "\n- ")[1:] {
		if err := c.empty(tube); err != nil {
			return fmt.Errorf("empty tube %s: %w", tube, err)
		}
	}
	return nil
}

// empty deletes the jobs of a tube and ends its pause. A job that another
// connection still holds comes back when the server notices that it is closed.
func (c *wire) empty(tube string) error {
	if _, err := fmt.Fprintf(c, "use %s\r\npause-tube %s 0\r\n", tube, tube); err != nil {
		return err
	}
	for range 2 {
		if _, err := c.in.ReadString('\n'); err != nil {
			return err
		}
	}
	for {
		left, err := c.jobs(tube)
		if err != nil || left == 0 {
			return err
		}
		for _, peek := range []string{"peek-ready", "peek-delayed", "peek-buried"} {
			if err := c.deleteHeads(peek); err != nil {
				return err
			}
		}
	}
}

// ask sends a command whose reply is OK with a body.
func (c *wire) ask(command string) (body string, err error) {
	if _, err := io.WriteString(c, command); err != nil {
		return "", err
	}
	return c.body()
}

// jobs counts a tube's jobs in all states.
func (c *wire) jobs(tube string) (total int, err error) {
	body, err := c.ask("stats-tube " + tube + "\r\n")
	if err != nil {
		return 0, err
	}
	_, values, err := parseDictionary(body)
	if err != nil {
		return 0, err
	}
	for _, state := range []string{"ready", "reserved", "delayed", "buried"} {
		var n int
		if _, err := fmt.Sscan(values["current-jobs-"+state], &n); err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func (c *wire) deleteHeads(peek string) error {
	for {
		if _, err := io.WriteString(c, peek+"\r\n"); err != nil {
			return err
		}
		head, err := c.in.ReadString('\n')
		if err != nil || head == "NOT_FOUND\r\n" {
			return err
		}
		var id, n int
		if _, err := fmt.Sscanf(head, "FOUND %d %d\r\n", &id, &n); err != nil {
			return fmt.Errorf("%s answered %q", peek, head)
		}
		if _, err := c.in.Discard(n + 2); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(c, "delete %d\r\n", id); err != nil {
			return err
		}
		if reply, err := c.in.ReadString('\n'); err != nil {
			return fmt.Errorf("delete answered %q: %w", reply, err)
		}
	}
}
