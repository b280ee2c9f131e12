package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// shownBytes is how much of a text a cell shows that is one of many.
const shownBytes = 60

// show makes one cell of a text: quoted when it would disturb the table, cut when it
// is long.
func show(body []byte) string {
	cut := ""
	if len(body) > shownBytes {
		cut = fmt.Sprintf("... (%d bytes)", len(body))
		text := utf8.Valid(body)
		body = body[:shownBytes]
		for text && !utf8.Valid(body) { // a character was cut in two
			body = body[:len(body)-1]
		}
	}
	return plain(body) + cut
}

// plain returns a line of text unchanged. Anything else is quoted: it would disturb a
// table or the terminal.
func plain(text []byte) string {
	s := string(text)
	if s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// whole makes a cell of a whole body when that is a line of text, else as show does.
func whole(body []byte) string {
	if text := plain(body); text == string(body) {
		return text
	}
	return show(body)
}

// isText reports whether a body can be printed as it is: lines of text.
func isText(body []byte) bool {
	return utf8.Valid(body) && !strings.ContainsFunc(string(body), func(r rune) bool {
		return r != '\n' && r != '\t' && !strconv.IsPrint(r)
	})
}

// hasLines reports whether a body is text of several lines, which is printed below what
// is said of its job.
func hasLines(body []byte) bool { return strings.Contains(string(body), "\n") && isText(body) }

// text prints lines as they are.
func (p printer) text(lines []byte) error {
	text := string(lines)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := p.to.Write([]byte(harmless(text, "\n\t")))
	return err
}

// rawFlag adds --raw, which no command takes with --json.
func (c *clientCommand) rawFlag(help string) *bool {
	return c.flags.BoolP("raw", "r", false, help)
}

// raw prints a body byte for byte. A terminal gets it harmless.
func (p printer) raw(body []byte) error {
	if w, ok := p.to.(*harmlessWriter); ok && !w.terminal {
		return w.asIs(body)
	}
	_, err := p.to.Write([]byte(harmless(string(body), "\n\t")))
	return err
}
