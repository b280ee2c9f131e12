package server

import (
	"cmp"
	"encoding"
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Setting is a flag of tarry server, which is also an environment variable and a key of the
// configuration file. --help, docs/configuration.md, completion, the checks and what a node shows of
// itself come from it.
type Setting struct {
	Name string
	help string
	To   any // a pointer to the member of the configuration, or what parses the text
	def  any // its default; nil: the zero value

	// For docs/configuration.md: the form of the values unless words has them all, the reason for
	// the default, and the default where the flag does not show it, or shows a number hard to read.
	Values, Why, ByDefault string

	Words   []string                // all values, if they are few
	Listens []string                // the addresses that it makes the node listen on
	closed  bool                    // these let nobody in without a certificate or a key
	check   func(flag string) error // nil: any value of its type is valid
	live    bool                    // a node takes it from its changed file without a restart

	// shown settings may be seen by anybody who may operate the cluster. The others are hidden, so a
	// flag for a secret is safe from its first day.
	shown bool
	show  string // the value, where the flag keeps no text
}

// settingGroup is a section of docs/configuration.md.
type settingGroup struct {
	Title string
	Flags []Setting
}

// define adds the flag.
func (s *Setting) define(fs *flag.FlagSet) {
	switch to := s.To.(type) {
	case *string:
		fs.StringVar(to, s.Name, orZero[string](s.def), s.help)
	case *int:
		fs.IntVar(to, s.Name, orZero[int](s.def), s.help)
	case *int64:
		fs.Int64Var(to, s.Name, orZero[int64](s.def), s.help)
	case *bool:
		fs.BoolVar(to, s.Name, orZero[bool](s.def), s.help)
	case *time.Duration:
		fs.DurationVar(to, s.Name, orZero[time.Duration](s.def), s.help)
	case func(string) error:
		fs.Func(s.Name, s.help, to)
	default:
		fs.TextVar(to.(encoding.TextUnmarshaler), s.Name, s.def.(encoding.TextMarshaler), s.help)
	}
}

func orZero[T any](def any) (zero T) {
	if def == nil {
		return zero
	}
	return def.(T)
}

// parsed sets a member to what parse makes of a text.
func parsed[T any](to *T, parse func(string) (T, error)) func(string) error {
	return func(text string) (err error) {
		*to, err = parse(text)
		return err
	}
}

// at is an address to listen on, if it is not empty.
func at(addr string) []string {
	if addr == "" {
		return nil
	}
	return []string{addr}
}

// refusedIf is a check. The text follows the flag.
func refusedIf(wrong bool, format string, args ...any) func(flag string) error {
	return func(flag string) error {
		if !wrong {
			return nil
		}
		return fmt.Errorf(flag+" "+format, args...)
	}
}

// between checks a range.
func between[T cmp.Ordered](v, least, most T) func(flag string) error {
	return refusedIf(v < least || v > most, "is %v; it must be between %v and %v", v, least, most)
}

// mistakes returns what is wrong with the value. insecure: other machines may reach the node.
func (s *Setting) mistakes(insecure bool) error {
	flag := "--" + s.Name
	var found []error
	for _, addr := range s.Listens {
		found = append(found, checkAddress(flag, addr, insecure || s.closed))
	}
	if text, ok := s.To.(*string); ok && s.Words != nil && !slices.Contains(s.Words, *text) {
		found = append(found, fmt.Errorf("%s is %q; it must be %s", flag, *text, OneOf(s.Words)))
	}
	if s.check != nil {
		found = append(found, s.check(flag))
	}
	return errors.Join(found...)
}

// OneOf lists words, "off, outgoing or full".
func OneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func checkAddress(flag, addr string, open bool) error {
	if path, isFile := strings.CutPrefix(addr, UnixPrefix); isFile && strings.HasPrefix(flag, "--beanstalk-") {
		if path == "" || len(path) > maxSocketPath {
			return fmt.Errorf("%s names a socket file by a path of %d bytes; it takes 1 to %d", flag, len(path), maxSocketPath)
		}
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s is %q; it must be host:port", flag, addr)
	}
	if !open && !loopback(host) {
		return fmt.Errorf("%s is %q, which other machines may reach, and whoever does can do everything, unless tokens are enforced (docs/tokens.md). "+
			"Listen on 127.0.0.1, or, where the network lets nobody else in, say so with --insecure (TARRY_INSECURE=true)", flag, addr)
	}
	return nil
}

// loopback reports whether only this machine can reach a listener at host. Of
// names it knows only localhost: any other may be resolved to anything.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
