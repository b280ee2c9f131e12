package main

import (
	"fmt"
	"strconv"
	"strings"

	"tarry/client"
)

// limitHelp is the help of the flag with limits of a token.
const limitHelp = "`NAME=NUMBER`: what the token may use on each node, such as rate=100,connections=10: operations a second (rate), open connections, streams and reserves that wait (waiters), bytes of bodies a second (bytes); it may be given several times"

// addLimits reads limits: a list of names with numbers.
func addLimits(to *client.TokenLimits, text string) error {
	for _, item := range splitList(text) {
		name, number, _ := strings.Cut(item, "=")
		var err error
		switch name {
		case "rate":
			to.Rate, err = strconv.ParseFloat(number, 64)
			if err == nil && !(to.Rate > 0) {
				err = strconv.ErrRange
			}
		case "connections":
			to.Connections, err = parseLimit[uint32](number, 32)
		case "waiters":
			to.Waiters, err = parseLimit[uint32](number, 32)
		case "bytes":
			to.Bytes, err = parseLimit[uint64](number, 64)
		default:
			return fmt.Errorf("%.40q is no limit; the limits are rate, connections, waiters and bytes", name)
		}
		if err != nil {
			return fmt.Errorf("%s takes a number above 0, got %.40q", name, number)
		}
	}
	return nil
}

func parseLimit[T uint32 | uint64](number string, bits int) (T, error) {
	n, err := strconv.ParseUint(number, 10, bits)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return T(n), err
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
