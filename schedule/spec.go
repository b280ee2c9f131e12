package schedule

import (
	"regexp"
	"strings"

	"tarry/job"
)

// cronField is one of an expression's fields, for people.
type cronField struct{ name, takes string }

// fieldsOf are those of a six-field expression.
var fieldsOf = [...]cronField{
	{"second", "0 to 59"},
	{"minute", "0 to 59"},
	{"hour", "0 to 23"},
	{"day of month", "1 to 31, L for the last day, L-3 for three days before it, 15W for the weekday nearest to the 15th"},
	{"month", "1 to 12 or JAN to DEC"},
	{"day of week", "0 to 7 or SUN to SAT (0 and 7 are Sunday), MON#1 for the first Monday of the month, MON#L for the last"},
}

const dayOfMonth, month, dayOfWeek = 3, 4, 5

var (
	months   = []string{"JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"}
	weekdays = []string{"SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"}

	word     = regexp.MustCompile(`[A-Z]+`)
	lastDay  = regexp.MustCompile(`^[A-Z]{3,}L$`)
	untilEnd = regexp.MustCompile(`^[0-9]+-L$`)
	numberL  = regexp.MustCompile(`^[0-7]L$`)
)

// spellOut writes an expression as the parser wants it, as far as it can mean only one thing: names
// of months and weekdays in full (MONDAY, SEPT), FRIL for the last Friday, 25-L for the days from
// the 25th on.
func spellOut(spec string, fields []string) string {
	if len(fields) < 5 || len(fields) > len(fieldsOf) {
		return spec
	}
	first := len(fieldsOf) - len(fields)
	spelled := make([]string, len(fields))
	for i, f := range fields {
		spelled[i] = spell(first+i, f)
	}
	return strings.Join(spelled, " ")
}

func spell(at int, text string) string {
	if at < dayOfMonth {
		return text
	}
	parts := strings.Split(strings.ToUpper(text), ",")
	for i, p := range parts {
		switch {
		case at == dayOfMonth && untilEnd.MatchString(p):
			parts[i] = strings.TrimSuffix(p, "L") + "31"
		case at == dayOfWeek && lastDay.MatchString(p) && short(weekdays, p[:len(p)-1]) != "":
			parts[i] = short(weekdays, p[:len(p)-1]) + "#L"
		case at == month:
			parts[i] = shorten(months, p)
		case at == dayOfWeek:
			parts[i] = shorten(weekdays, p)
		}
	}
	spelled := strings.Join(parts, ",")
	if at == dayOfWeek { // the parser takes THU for one of its own words with an H
		spelled = strings.ReplaceAll(spelled, "THU", "4")
	}
	return spelled
}

func shorten(names []string, text string) string {
	return word.ReplaceAllStringFunc(text, func(w string) string {
		if name := short(names, w); name != "" {
			return name
		}
		return w
	})
}

// short returns the first three letters of the name that begins with three or more letters; empty:
// none does.
func short(names []string, letters string) string {
	for _, name := range names {
		if len(letters) >= 3 && strings.HasPrefix(name, letters) {
			return name[:3]
		}
	}
	return ""
}

// explain finds the invalid field among five or six, by parsing each one alone.
func explain(spec string, fields []string) error {
	first := len(fieldsOf) - len(fields)
	position := 0
	for i, text := range fields {
		position += strings.Index(spec[position:], text)
		alone := strings.Fields("0 * * * * *")
		alone[first+i] = spell(first+i, text)
		if _, err := parser.Parse(strings.Join(alone, " ")); err != nil {
			f := fieldsOf[first+i]
			return job.Invalid("spec", "has %.40q for the %s, at byte %d; %s", text, f.name, position+1, hint(first+i, text))
		}
		position += len(text)
	}
	return job.Invalid("spec", "is %.60q, which is no cron expression", spec)
}

// hint says what a field takes instead.
func hint(at int, text string) string {
	switch text = strings.ToUpper(text); {
	case strings.HasPrefix(text, "H"):
		return "H is not known here: give a value, and jitter to spread the runs"
	case at == dayOfWeek && numberL.MatchString(text):
		day := weekdays[(text[0]-'0')%7]
		return "for the last " + day[:1] + strings.ToLower(day[1:]) + " of the month give " + day[:3] + "#L"
	}
	return "it takes " + fieldsOf[at].takes + ", or *, and lists, ranges and steps of them such as 1,5 or 2-4 or */3"
}

// checkDays refuses a day of the month and a day of the week of which one is a step from *, such as
// */2: most programs want both to match then, and others, as here, one of the two.
func checkDays(spec string) error {
	fields := strings.Fields(spec)
	if len(fields) < 5 {
		return nil
	}
	dom, dow := fields[len(fields)-3], fields[len(fields)-1]
	limits := func(f string) bool { return f != "*" && f != "?" }
	if limits(dom) && limits(dow) && (strings.HasPrefix(dom, "*") || strings.HasPrefix(dow, "*")) {
		return job.Invalid("spec", "is %.60q: for some programs both the day of the month and the day of the week must match then, for others one of them; write the steps with a range, such as 1-31/2, if one of them is enough", spec)
	}
	return nil
}
