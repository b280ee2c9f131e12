package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tarry/job"
)

// duration is a flag's value: a Go duration (1h30m, 250ms), which may begin with weeks
// and days (2w, 1d12h), or plain seconds.
type duration struct {
	d        time.Duration
	set      bool
	positive bool // 0, which means the default to the client, is refused
}

func (v *duration) String() string {
	if v.d == 0 {
		return ""
	}
	return job.DurationText(v.d)
}

func (v *duration) Type() string { return "duration" }

func (v *duration) Set(s string) error {
	v.set = true
	d, err := job.ParseDuration(s)
	if err != nil {
		return err
	}
	v.d = d
	if v.positive && v.d == 0 {
		return errors.New("it must be more than 0; leave the flag out for the default")
	}
	return nil
}

// filled reads a flag's value that may be left out but not be empty, as that of a
// script's variable is which is not set.
func filled(to *string) func(string) error {
	return func(text string) error {
		if text == "" {
			return errors.New("it is empty; leave the flag out")
		}
		*to = text
		return nil
	}
}

// revisionOf reads a revision, of so many bits.
func revisionOf(text string, bits int) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, bits)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a revision", text)
	case n == 0:
		return 0, errors.New("revisions start with 1; leave the flag out for any")
	}
	return n, nil
}

// pair reads name=value into a map.
func pair(to *map[string]string, text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%q is not of the form name=value", text)
	}
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
	return nil
}

// number is a flag's value that may be left out.
type number struct{ v *uint32 }

func (n *number) String() string {
	if n == nil || n.v == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*n.v), 10)
}

func (n *number) Type() string { return "number" }

func (n *number) Set(s string) error {
	v, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return fmt.Errorf("%q is not a whole number between 0 and 4294967295", s)
	}
	n.v = new(uint32(v))
	return nil
}

// instant is a flag's value that may be left out.
type instant struct{ t time.Time }

func (i *instant) String() string {
	if i == nil || i.t.IsZero() {
		return ""
	}
	return i.t.Format(time.RFC3339Nano)
}

func (i *instant) Type() string { return "instant" }

func (i *instant) Set(s string) (err error) {
	if i.t, err = time.Parse(time.RFC3339, s); err != nil {
		return fmt.Errorf("%q is not an RFC 3339 instant with a zone, such as 2030-01-31T12:00:00Z", s)
	}
	return nil
}
