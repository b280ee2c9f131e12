package ui

import (
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// look is the template of one kind of page: the layout and the components with its own "main".
type look = *template.Template

// parse returns the looks by the names of their files.
func parse(d *Dashboard) map[string]look {
	shared := template.Must(template.New("").Funcs(functions(d)).ParseFS(files, "templates/shared/*.html"))
	own, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		panic(err) // they are part of the binary
	}
	looks := map[string]look{}
	for _, file := range own {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html")
		looks[name] = template.Must(template.Must(shared.Clone()).ParseFS(files, file))
	}
	return looks
}

// functions are what templates call. Those of components return what the component with the
// same name shows.
func functions(d *Dashboard) template.FuncMap {
	return template.FuncMap{
		"asset":   func(file string) string { return assetNames[file] },
		"address": address,
		"deadKey": deadKey,
		"number":  number,
		"exact":   exact,
		"ago":     func(at time.Time) string { return relative(at, d.now()) },
		"late":    func(at time.Time) bool { return !at.IsZero() && d.now().Sub(at) > lateAfter },
		"since":   func(at time.Time) string { return span(d.now().Sub(at)) },
		"wrong":   wrongField,
		"stamp":   stamp,
		"minute":  func(at time.Time) string { return at.UTC().Format("Mon 2 Jan 15:04 UTC") },
		"iso":     func(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") },
		"span":    span,
		"bytes":   byteCount,
		"size":    size,
		"plural":  plural,
		"notice":  func(title, text string, commands ...string) emptyState { return emptyState{title, text, commands} },
		"pager":   func(first, next string) pager { return pager{first, next} },
		"rate":    rate,
		"jobs":    func(v *view, l *jobList) jobsView { return jobsView{v, l} },
		"quoted":  shellWord,
		"ms":      milliseconds,
	}
}

// wrongField returns the failure of an action if it is about a field or a part of it; nil if
// not.
func wrongField(v *view, field string) *failure {
	if v.Failure == nil {
		return nil
	}
	if rest, ok := strings.CutPrefix(v.Failure.Field, field); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
		return v.Failure
	}
	return nil
}

// milliseconds returns seconds as a signed number of milliseconds: "+12 ms", "0 ms".
func milliseconds(seconds float64) string {
	n := int64(math.Round(seconds * 1000))
	if n == 0 {
		return "0 ms"
	}
	return fmt.Sprintf("%+d ms", n)
}

// emptyState is shown in place of a list without items.
type emptyState struct {
	Title, Text string
	Commands    []string // what to type next
}

// pager has the addresses of the first and the next page; empty: none.
type pager struct{ First, Next string }

// number returns n in at most five characters: 9,999 or 12.3k.
func number(n uint64) string {
	if n < 10_000 {
		return exact(n)
	}
	f := float64(n)
	for _, unit := range []string{"k", "M", "G", "T", "P"} {
		f /= 1000
		switch {
		case f < 99.95:
			return strconv.FormatFloat(f, 'f', 1, 64) + unit
		case f < 999.5:
			return strconv.FormatFloat(f, 'f', 0, 64) + unit
		}
	}
	return strconv.FormatFloat(f, 'g', 3, 64) + "P"
}

// exact returns n with its digits in groups of three.
func exact(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// stamp returns an instant with all its digits.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05.000 UTC") }

// relative returns when at is, as seen at now: "in 5 min", "2 h ago".
func relative(at, now time.Time) string {
	d := at.Sub(now)
	switch {
	case at.IsZero():
		return "never"
	case d > 500*time.Millisecond:
		return "in " + span(d)
	case d < -500*time.Millisecond:
		return span(-d) + " ago"
	}
	return "now"
}

// spanUnits are the units of durations, the largest first.
var spanUnits = []struct {
	name string
	d    time.Duration
}{{"y", 365 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}}

// span returns a duration in its largest unit, with the next one if that says much, rounded to
// the last unit that it has.
func span(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	for i, u := range spanUnits {
		if d < u.d {
			continue
		}
		last := u // the unit to which d is rounded
		if n := d / u.d; n < 10 && i+1 < len(spanUnits) && (u.d > time.Minute || n < 3) {
			last = spanUnits[i+1]
		}
		rounded := d.Round(last.d)
		if i > 0 && rounded >= spanUnits[i-1].d {
			return span(rounded)
		}
		text := fmt.Sprintf("%d %s", rounded/u.d, u.name)
		if rest := rounded % u.d; rest > 0 {
			text += fmt.Sprintf(" %d %s", rest/last.d, last.name)
		}
		return text
	}
	return "0 s"
}

// byteCount returns a size in bytes, in binary units.
func byteCount(n int) string {
	switch {
	case n < 1<<10:
		return plural(uint64(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// size returns a number of bytes in at most three digits, in binary units.
func size(n uint64) string {
	f := float64(n)
	for _, unit := range []string{"bytes", "KiB", "MiB", "GiB", "TiB"} {
		if f < 1000 {
			return strconv.FormatFloat(f, 'g', 3, 64) + " " + unit
		}
		f /= 1 << 10
	}
	return strconv.FormatFloat(f, 'g', 3, 64) + " PiB"
}

// plural returns "1 job" or "2 jobs".
func plural(n uint64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return exact(n) + " " + word + "s"
}

// rate returns a number of jobs in a second.
func rate(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "0"
	case perSecond < 0.1:
		return "<0.1"
	case perSecond < 100:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return number(uint64(perSecond + 0.5))
}

// shellWord returns text as one word of a shell. Names come from strangers, and commands are
// there to be copied.
func shellWord(text string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:/@%+=,", r) || r == '-'
	}
	if text != "" && text[0] != '-' && strings.IndexFunc(text, func(r rune) bool { return !safe(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// short cuts text to at most so many bytes.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
