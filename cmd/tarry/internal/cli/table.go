package cli

import (
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// gap is between two columns.
const gap = 2

// Table prints rows of cells under a head, in columns.
func (t *Terminal) Table(head []string, rows [][]string) error {
	text := t.Columns(head, rows)
	if w, ok := t.Out.To.(*HarmlessWriter); ok && t.colors {
		return w.AsIs([]byte(text)) // each cell is harmless
	}
	_, err := t.Out.To.Write([]byte(text))
	return err
}

// Columns lays a table out.
func (t *Terminal) Columns(head []string, rows [][]string) string {
	all := append([][]string{head}, rows...)
	var widths []int
	for _, row := range all {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}
	var b strings.Builder
	for r, row := range all {
		space := 0 // before the next cell that has something
		for i, cell := range row {
			if cell != "" {
				b.WriteString(strings.Repeat(" ", space) + t.paint(cellStyle(head, row, r, i), Harmless(cell, "")))
				space = 0
			}
			space += widths[i] + gap - width(cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func width(cell string) int { return utf8.RuneCountInString(Harmless(cell, "")) }

// style is a sequence that a terminal understands; empty: none.
type style string

const (
	bold     style = "\x1b[1m"
	red      style = "\x1b[31m"
	green    style = "\x1b[32m"
	yellow   style = "\x1b[33m"
	cyan     style = "\x1b[36m"
	unstyled style = "\x1b[0m"
)

// stateStyles are the styles of the states of jobs.
var stateStyles = map[string]style{"delayed": cyan, "ready": green, "reserved": yellow, "dead": red}

// cellStyle is the style of a cell: heads are bold, and so are the names of what a
// table with one thing shows. States have their colours.
func cellStyle(head, row []string, r, i int) style {
	single := strings.ToUpper(head[0]) != head[0]
	switch {
	case r == 0 && !single, single && i == 0:
		return bold
	case single && row[0] == "state", !single && head[i] == "STATE":
		return stateStyles[row[i]]
	}
	return ""
}

func (t *Terminal) paint(s style, text string) string {
	if !t.colors || s == "" || text == "" {
		return text
	}
	return string(s) + text + string(unstyled)
}

// mayColor reports whether output is coloured: on a terminal, unless NO_COLOR is set
// (no-color.org) or the terminal knows no colours.
func mayColor(to any) bool {
	return OnTerminal(to) && os.Getenv("NO_COLOR") == "" && !slices.Contains([]string{"", "dumb"}, os.Getenv("TERM"))
}
