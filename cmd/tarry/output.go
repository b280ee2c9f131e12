package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// printJSON prints v on one line.
func (t *terminal) printJSON(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	_, err = fmt.Fprintf(t.out, "%s\n", line)
	return err
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

// table prints rows of cells under a head, in columns.
func (t *terminal) table(head []string, rows [][]string) error {
	w := tabwriter.NewWriter(t.out, 0, 8, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		// No space behind the last column.
		if _, err := io.WriteString(w, strings.Join(row, "\t")+"\n"); err != nil {
			return err
		}
	}
	return w.Flush()
}

// when shows an instant to people.
func when(i time.Time) string {
	if i.IsZero() {
		return "-"
	}
	return i.UTC().Format("2006-01-02T15:04:05.000Z")
}

// shownBytes is how much of a body a table shows.
const shownBytes = 60

// show makes one cell of a body: quoted when it would disturb the table, cut
// when it is long.
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

// plain is text as it is, or quoted when it would disturb a table or the terminal.
func plain(text []byte) string {
	quoted := strconv.Quote(string(text))
	if quoted == `"`+string(text)+`"` && len(text) > 0 {
		return string(text)
	}
	return quoted
}
