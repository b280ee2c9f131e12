package cli

import (
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// RawWriter writes to standard output what programs read.
type RawWriter struct{ Out Printer }

func (w RawWriter) Write(p []byte) (int, error) { return len(p), w.Out.Raw(p) }

func Count(n uint64) string { return strconv.FormatUint(n, 10) }

// Harmless is text that cannot steer a terminal nor pretend to be other lines. Names,
// reasons and messages come from clients and from other nodes. Control characters
// (those of C1 and line separators, too) and what changes the direction of writing
// are shown as JSON escapes them, so that what was JSON stays the same JSON. Those
// in keep stay.
func Harmless(text, keep string) string {
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

// HarmlessWriter stands before the standard streams of all commands. A character
// that comes in two writes is shown as two that are no UTF-8.
type HarmlessWriter struct {
	mu       sync.Mutex // a note may come while a command prints
	To       io.Writer
	Terminal bool // a person looks at it
}

// standard puts a HarmlessWriter before a standard stream.
func standard(to io.Writer) *HarmlessWriter {
	return &HarmlessWriter{To: to, Terminal: OnTerminal(to)}
}

func (w *HarmlessWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(w.To, Harmless(string(p), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// IsTerminal reports whether a person looks at what is written.
func (w *HarmlessWriter) IsTerminal() bool { return w.Terminal }

// AsIs writes what must not be changed: bytes for a program, or text that is made
// harmless already, with the sequences that colour it.
func (w *HarmlessWriter) AsIs(p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.To.Write(p)
	return err
}

// Printer prints whole lines. It is no io.Writer, so that nothing else is printed
// that may come from a server.
type Printer struct{ To io.Writer }

// Line prints one line, whatever is in it.
func (p Printer) Line(format string, args ...any) error {
	_, err := io.WriteString(p.To, Harmless(fmt.Sprintf(format, args...), "")+"\n")
	return err
}

// NotePrinter prints lines for people, beside the output. Nobody is left to tell if that fails.
type NotePrinter struct{ Printer }

func (p NotePrinter) Line(format string, args ...any) { _ = p.Printer.Line(format, args...) }

// PrintJSON prints v on one line.
func (t *Terminal) PrintJSON(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return t.Out.Line("%s", line)
}

// InTables prints a list in tables of a thousand rows, so that a long one begins at once; an empty
// one is printed, too.
func InTables[T any](list iter.Seq2[T, error], print func(page []T) error) error {
	var page []T
	printed := false
	for one, err := range list {
		if err != nil {
			return err
		}
		if page = append(page, one); len(page) == BatchJobs {
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

// PrintAll prints one JSON object a line, or a table with a row for each.
func PrintAll[T any](t *Terminal, all []T, head []string, row func(T) []string) error {
	if t.JSON {
		for _, one := range all {
			if err := t.PrintJSON(one); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][]string, len(all))
	for i, one := range all {
		rows[i] = row(one)
	}
	return t.Table(head, rows)
}
