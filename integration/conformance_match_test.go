package integration

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var variable = regexp.MustCompile(`\$[a-z_]+`)

// fill puts saved values into every string of v.
func fill(v any, vars object) (any, error) {
	switch v := v.(type) {
	case string:
		if name := variable.FindString(v); name == v && name != "" {
			value, ok := vars[name[1:]]
			if !ok {
				return nil, fmt.Errorf("%s was not saved", name)
			}
			return value, nil
		}
		var missing error
		return variable.ReplaceAllStringFunc(v, func(name string) string {
			value, ok := vars[name[1:]]
			if !ok {
				missing = fmt.Errorf("%s was not saved", name)
			}
			return fmt.Sprint(value)
		}), missing
	case object:
		out := object{}
		for name, item := range v {
			filled, err := fill(item, vars)
			if err != nil {
				return nil, err
			}
			out[name] = filled
		}
		return out, nil
	case []any:
		out := []any{}
		for _, item := range v {
			items, of := 1, vars
			if o, ok := item.(object); ok && o["=times"] != nil {
				times := o["=times"].([]any)
				items, item = int(times[0].(float64)), times[1]
				of = maps.Clone(vars)
			}
			for n := range items {
				if items > 1 {
					of["n"] = float64(n + 1)
				}
				filled, err := fill(item, of)
				if err != nil {
					return nil, err
				}
				out = append(out, filled)
			}
		}
		return out, nil
	}
	return v, nil
}

// match compares a result with what a case wants; there says where in the result.
func match(want, got any, there string) error {
	switch w := want.(type) {
	case object:
		if len(w) == 1 {
			for name, arg := range w {
				if strings.HasPrefix(name, "=") {
					return matchTest(name, arg, got, there)
				}
			}
		}
		g, ok := got.(object)
		if !ok {
			return fmt.Errorf("%s is %v, want an object", there, got)
		}
		for _, name := range slices.Sorted(maps.Keys(w)) {
			if err := match(w[name], g[name], there+"."+name); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf("%s is %v, want %d elements: %v", there, got, len(w), want)
		}
		for i := range w {
			if err := match(w[i], g[i], there+"."+strconv.Itoa(i)); err != nil {
				return err
			}
		}
		return nil
	}
	if !same(want, got) {
		return fmt.Errorf("%s is %v, want %v", there, got, want)
	}
	return nil
}

// same compares single values: numbers by their size, instants by their time.
func same(want, got any) bool {
	if w, ok := want.(float64); ok {
		g, ok := got.(float64)
		return ok && math.Abs(w-g) < 1e-6
	}
	if w, ok := instant(want); ok {
		if g, ok := instant(got); ok {
			return w.Equal(g)
		}
	}
	return reflect.DeepEqual(want, got)
}

func instant(v any) (time.Time, bool) {
	text, ok := v.(string)
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// matchTest is a want of the form {=name: arg}.
func matchTest(name string, arg, got any, there string) error {
	holds := false
	number, isNumber := got.(float64)
	bound, _ := arg.(float64)
	switch name {
	case "=any":
		holds = got != nil
	case "=absent":
		holds = got == nil || got == false
	case "=not":
		holds = got != nil && !same(arg, got)
	case "=min":
		holds = isNumber && number >= bound
	case "=max":
		holds = isNumber && number <= bound
	case "=contains":
		part, _ := arg.(string)
		text, _ := got.(string)
		holds = part != "" && strings.Contains(text, part)
	case "=length":
		holds = length(got) == int(bound)
	case "=after":
		early, ok1 := instant(arg)
		late, ok2 := instant(got)
		holds = ok1 && ok2 && late.After(early)
	case "=one_of":
		options, _ := arg.([]any)
		holds = slices.ContainsFunc(options, func(o any) bool { return match(o, got, there) == nil })
	case "=set":
		holds = matchSet(arg, got) && length(arg) == length(got)
	case "=has":
		holds = matchSet(arg, got)
	default:
		return fmt.Errorf("%s: there is no test %s", there, name)
	}
	if !holds {
		return fmt.Errorf("%s is %v, want {%s: %v}", there, got, name, arg)
	}
	return nil
}

func length(v any) int {
	switch v := v.(type) {
	case []any:
		return len(v)
	case string:
		return utf8.RuneCountInString(v)
	}
	return -1
}

// matchSet reports whether a list has an element for each that is wanted.
func matchSet(want, got any) bool {
	w, _ := want.([]any)
	g, ok := got.([]any)
	if !ok {
		return false
	}
	left := slices.Clone(g)
	for _, one := range w {
		i := slices.IndexFunc(left, func(v any) bool { return match(one, v, "") == nil })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

// at finds the value at a path such as jobs.0.token.
func at(v any, path string) (any, error) {
	for _, name := range strings.Split(path, ".") {
		switch in := v.(type) {
		case object:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil, fmt.Errorf("there is no element %s in %v", name, in)
			}
			v = in[i]
		default:
			return nil, fmt.Errorf("there is no %s in %v", name, v)
		}
	}
	if v == nil {
		return nil, fmt.Errorf("there is nothing at %s", path)
	}
	return v, nil
}

func TestConformanceTellsResultsApart(t *testing.T) {
	got := object{"id": "a", "n": 2.0, "at": "2026-11-21T15:22:53.750Z", "list": []any{"x", object{"y": 1.0, "z": 2.0}}, "off": false, "none": nil}
	for want, holds := range map[*any]bool{
		ptr(object{"id": "a", "n": 2.0}):                                   true,
		ptr(object{"id": "b"}):                                             false,
		ptr(object{"missing": "a"}):                                        false,
		ptr(object{"n": "2"}):                                              false,
		ptr(object{"n": object{"=min": 2.0}}):                              true,
		ptr(object{"n": object{"=min": 3.0}}):                              false,
		ptr(object{"n": object{"=max": 1.0}}):                              false,
		ptr(object{"at": "2026-11-21T16:22:53.75+01:00"}):                  true,
		ptr(object{"at": "2026-11-21T15:22:53.751Z"}):                      false,
		ptr(object{"at": object{"=after": "2026-11-21T15:22:53Z"}}):        true,
		ptr(object{"at": object{"=after": "2026-11-21T15:22:53.75Z"}}):     false,
		ptr(object{"list": []any{"x", object{"y": 1.0}}}):                  true,
		ptr(object{"list": []any{"x"}}):                                    false,
		ptr(object{"list": []any{object{"y": 1.0}, "x"}}):                  false,
		ptr(object{"list": object{"=set": []any{object{"y": 1.0}, "x"}}}):  true,
		ptr(object{"list": object{"=set": []any{"x", "x"}}}):               false,
		ptr(object{"list": object{"=has": []any{"x"}}}):                    true,
		ptr(object{"list": object{"=has": []any{"x", "x"}}}):               false,
		ptr(object{"list": object{"=length": 2.0}}):                        true,
		ptr(object{"list": object{"=length": 1.0}}):                        false,
		ptr(object{"off": object{"=absent": true}}):                        true,
		ptr(object{"none": object{"=absent": true}}):                       true,
		ptr(object{"missing": object{"=absent": true}}):                    true,
		ptr(object{"id": object{"=absent": true}}):                         false,
		ptr(object{"none": object{"=any": true}}):                          false,
		ptr(object{"missing": object{"=any": true}}):                       false,
		ptr(object{"id": object{"=not": "a"}}):                             false,
		ptr(object{"missing": object{"=not": "a"}}):                        false,
		ptr(object{"id": object{"=one_of": []any{"b", "a"}}}):              true,
		ptr(object{"id": object{"=one_of": []any{"b"}}}):                   false,
		ptr(object{"at": object{"=contains": "-11-"}}):                     true,
		ptr(object{"at": object{"=contains": "-12-"}}):                     false,
		ptr(object{"n": object{"=contains": "2"}}):                         false,
		ptr(object{"id": object{"=unheard": true}}):                        false,
		ptr(object{"list": object{"=one_of": []any{[]any{}, []any{"x"}}}}): false,
	} {
		require.Equal(t, holds, match(*want, got, "result") == nil, "%v", *want)
	}
}

func ptr(v any) *any { return &v }

func TestConformanceFillsInWhatWasSaved(t *testing.T) {
	got, err := fill(object{"id": "$run-1", "jobs": []any{"$n"}, "text": "costs 5 $"}, object{"run": "r", "n": 7.0})
	require.NoError(t, err)
	require.Equal(t, object{"id": "r-1", "jobs": []any{7.0}, "text": "costs 5 $"}, got)
	got, err = fill([]any{0.0, object{"=times": []any{2.0, "$run-$n"}}, "$n"}, object{"run": "r", "n": 7.0})
	require.NoError(t, err)
	require.Equal(t, []any{0.0, "r-1", "r-2", 7.0}, got)
	_, err = fill("a $missing", object{})
	require.Error(t, err)
	_, err = fill([]any{"$missing"}, object{})
	require.Error(t, err)
}
