package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tarry/client"
	"tarry/job"
)

// limitHelp is the help of the flag with limits of a token.
const limitHelp = "`NAME=NUMBER`: what the token may use on each node, such as rate=100,connections=10: operations a second (rate), open connections, streams and reserves that wait (waiters), bytes of bodies a second (bytes); it may be given several times"

// addLimits reads limits: a list of names with numbers.
func addLimits(to *client.TokenLimits, text string) error {
	items := splitList(text)
	if len(items) == 0 {
		return errors.New("is empty; leave it out, for no limits")
	}
	for _, item := range items {
		name, number, _ := strings.Cut(item, "=")
		if err := addLimit(to, name, number); err != nil {
			return err
		}
	}
	return nil
}

func addLimit(to *client.TokenLimits, name, number string) error {
	switch name {
	case "rate":
		n, err := strconv.ParseFloat(number, 64)
		if most := job.MaxRateMilli / 1000; err != nil || !(n >= 0.001 && n <= float64(most)) {
			return fmt.Errorf("rate takes a number from 0.001 to %d, got %.40q", most, number)
		}
		return setLimit(&to.Rate, n, name)
	case "connections":
		return addWhole(&to.Connections, name, number, math.MaxUint32)
	case "waiters":
		return addWhole(&to.Waiters, name, number, math.MaxUint32)
	case "bytes":
		return addWhole(&to.Bytes, name, number, job.MaxTokenBytes)
	}
	return fmt.Errorf("%.40q is no limit; the limits are rate, connections, waiters and bytes", name)
}

func addWhole[T uint32 | uint64](to *T, name, number string, most uint64) error {
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || n == 0 || n > most {
		return fmt.Errorf("%s takes a whole number from 1 to %d, got %.40q", name, most, number)
	}
	return setLimit(to, T(n), name)
}

func setLimit[T uint32 | uint64 | float64](to *T, n T, name string) error {
	if *to != 0 {
		return fmt.Errorf("%s is given twice", name)
	}
	*to = n
	return nil
}

// limitWords writes limits as --limit takes them.
func limitWords(l client.TokenLimits) string {
	var words []string
	add := func(name string, n float64) {
		if n != 0 {
			words = append(words, name+"="+strconv.FormatFloat(n, 'f', -1, 64))
		}
	}
	add("rate", l.Rate)
	add("connections", float64(l.Connections))
	add("waiters", float64(l.Waiters))
	add("bytes", float64(l.Bytes))
	return strings.Join(words, ",")
}
