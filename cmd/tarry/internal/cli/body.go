package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// shownBytes is how much of a text a cell shows that is one of many.
const shownBytes = 60

// Show makes one cell of a text: quoted when it would disturb the table, cut when it
// is long.
func Show(body []byte) string {
	cut := ""
	if len(body) > shownBytes {
		cut = fmt.Sprintf("... (%d bytes)", len(body))
		text := utf8.Valid(body)
		body = body[:shownBytes]
		for text && !utf8.Valid(body) { // a character was cut in two
			body = body[:len(body)-1]
		}
	}
	return Plain(body) + cut
}

// Plain returns a line of text unchanged. Anything else is quoted: it would disturb a
// table or the terminal.
func Plain(text []byte) string {
	s := string(text)
	if s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// Whole makes a cell of a whole body when that is a line of text, else as show does.
func Whole(body []byte) string {
	if text := Plain(body); text == string(body) {
		return text
	}
	return Show(body)
}

// isText reports whether a body can be printed as it is: lines of text.
func isText(body []byte) bool {
	return utf8.Valid(body) && !strings.ContainsFunc(string(body), func(r rune) bool {
		return r != '\n' && r != '\t' && !strconv.IsPrint(r)
	})
}

// HasLines reports whether a body is text of several lines, which is printed below what
// is said of its job.
func HasLines(body []byte) bool { return strings.Contains(string(body), "\n") && isText(body) }

// Text prints lines as they are.
func (p Printer) Text(lines []byte) error {
	text := string(lines)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := p.To.Write([]byte(Harmless(text, "\n\t")))
	return err
}

// RawFlag adds --raw, which no command takes with --json.
func (c *Command) RawFlag(help string) *bool {
	return c.Flags.BoolP("raw", "r", false, help)
}

// Raw prints a body byte for byte. A terminal gets it harmless.
func (p Printer) Raw(body []byte) error {
	if w, ok := p.To.(*HarmlessWriter); ok && !w.Terminal {
		return w.AsIs(body)
	}
	_, err := p.To.Write([]byte(Harmless(string(body), "\n\t")))
	return err
}
