package main

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// harmless is text that cannot steer a terminal nor pretend to be other lines. Names,
// reasons and messages come from clients and from other nodes. Control characters
// (those of C1 and line separators, too) and what changes the direction of writing
// are shown as JSON escapes them, so that what was JSON stays the same JSON. Those
// in keep stay.
func harmless(text, keep string) string {
	if strings.IndexFunc(text, func(r rune) bool { return harmful(r, keep) }) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text { // bytes that are no UTF-8 become U+FFFD
		if harmful(r, keep) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func harmful(r rune, keep string) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) && !strings.ContainsRune(keep, r)
}

// harmlessWriter stands before the standard streams of all commands. A character
// that comes in two writes is shown as two that are no UTF-8.
type harmlessWriter struct {
	mu       sync.Mutex // a note may come while a command prints
	to       io.Writer
	terminal bool // a person looks at it
}

// standard puts a harmlessWriter before a standard stream.
func standard(to io.Writer) *harmlessWriter {
	return &harmlessWriter{to: to, terminal: onTerminal(to)}
}

func (w *harmlessWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(w.to, harmless(string(p), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// IsTerminal reports whether a person looks at what is written.
func (w *harmlessWriter) IsTerminal() bool { return w.terminal }

// asIs writes what must not be changed: bytes for a program, or text that is made
// harmless already, with the sequences that colour it.
func (w *harmlessWriter) asIs(p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(p)
	return err
}

// printer prints whole lines. It is no io.Writer, so that nothing else is printed
// that may come from a server.
type printer struct{ to io.Writer }

// line prints one line, whatever is in it.
func (p printer) line(format string, args ...any) error {
	_, err := io.WriteString(p.to, harmless(fmt.Sprintf(format, args...), "")+"\n")
	return err
}

// notePrinter prints lines for people, beside the output. Nobody is left to tell if that fails.
type notePrinter struct{ printer }

func (p notePrinter) line(format string, args ...any) { _ = p.printer.line(format, args...) }

// printJSON prints v on one line.
func (t *terminal) printJSON(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return t.out.line("%s", line)
}

// inTables prints a list in tables of a thousand rows, so that a long one begins at once; an empty
// one is printed, too.
func inTables[T any](list iter.Seq2[T, error], print func(page []T) error) error {
	var page []T
	printed := false
	for one, err := range list {
		if err != nil {
			return err
		}
		if page = append(page, one); len(page) == batchJobs {
			if err := print(page); err != nil {
				return err
			}
			page, printed = page[:0], true
		}
	}
	if printed && len(page) == 0 {
		return nil
	}
	return print(page)
}

// printAll prints one JSON object a line, or a table with a row for each.
func printAll[T any](t *terminal, all []T, head []string, row func(T) []string) error {
	if t.json {
		for _, one := range all {
			if err := t.printJSON(one); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][]string, len(all))
	for i, one := range all {
		rows[i] = row(one)
	}
	return t.table(head, rows)
}
