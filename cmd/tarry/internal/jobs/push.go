package jobs

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

// registerPush adds the flags of a target. The secret comes from a file or the
// environment: command lines are seen by others.
func (s *settingFlags) registerPush(c *cli.Command) {
	target := func() *client.Push {
		if s.Push == nil {
			s.Push = &client.Push{Secret: os.Getenv("TARRY_PUSH_SECRET")}
		}
		return s.Push
	}
	c.Flags.Func("push", "`URL` that each job is posted to; the nodes must allow it with --push-allow", func(text string) error {
		p := target()
		p.URL = text
		return nil
	})
	c.Flags.Func("push-secret-file", "`file` with the secret that signs the posts, 16 to 256 bytes; or set TARRY_PUSH_SECRET; default: the one that is there, for the same server", func(name string) error {
		data, err := os.ReadFile(name)
		target().Secret = strings.TrimRight(string(data), "\r\n")
		return err
	})
	c.Flags.BoolFunc("push-job-urls", "permit jobs a URL of their own (tarry add --push-url); then --push may be left out", func(text string) (err error) {
		target().JobURLs, err = strconv.ParseBool(text)
		return err
	})
	c.Flags.Func("push-timeout", "`time` that the target has to answer, up to 5m (default 10s)", func(text string) error {
		return setTime(&target().Timeout, text)
	})
	c.Flags.Func("push-concurrency", "`number` of posts at once, 1 to 100 (default 10)", func(text string) error {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n == 0 {
			return fmt.Errorf("%q is not a whole number between 1 and 100", text)
		}
		target().Concurrency = uint32(n)
		return nil
	})
}

func pushWords(p *client.Push) string {
	words := p.URL
	switch {
	case p.JobURLs && p.URL == "":
		words = "to the URL of each job"
	case p.JobURLs:
		words += ", or to the URL of a job"
	}
	if p.Timeout.Duration != 0 {
		words += fmt.Sprintf(", %s to answer", job.DurationText(p.Timeout.Duration))
	}
	if p.Concurrency != 0 {
		words += fmt.Sprintf(", %d at once", p.Concurrency)
	}
	return words
}
