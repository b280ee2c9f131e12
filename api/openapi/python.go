package openapi

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"tarry/api/wire"
)

// In Python some types and fields have names of their own; an empty one is not there.
var pythonNames = map[string]string{
	"HistoryEvent": "Event", "ReservedJob": "Reserved", "ScheduleInfo": "Schedule",
	"Problem": "", "ScheduleCounts": "", "Settings": "", "TokenLimits": "",
	"Rescheduled.rescheduled": "count",
}

// pythonFields are fields that are not of the type, or have not the default, of others like them.
var pythonFields = map[string]string{
	"Health.failure_tolerance": "int = 0",
	"Quotas.bytes":             "Optional[int] = None",
	"Quotas.jobs":              "Optional[int] = None",
	"Quotas.rate":              "Optional[float] = None",
	"Quotas.topics":            "Optional[int] = None",
	"ScheduleInfo.counts":      "Dict[str, int] = field(default_factory=dict)",
	"ScheduleInfo.job":         "JSON = field(default_factory=dict)",
	"TokenPut.token":           `str = field(default="", repr=False)`,
	"TopicSettings.settings":   "JSON = field(default_factory=dict)",
}

// Python returns the types of replies for clients/python.
func Python() []byte {
	var b bytes.Buffer
	b.WriteString(`"""What calls return. Made from package api/wire: go test ./api -run OpenAPI -update"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Dict, List, Optional

from ._reply import JSON, Reply
`)
	names := make(map[reflect.Type]string)
	for _, c := range clientTypes {
		names[reflect.TypeOf(c.of)] = pythonName(c.name, c.name)
	}
	for _, c := range clientTypes {
		name := pythonName(c.name, c.name)
		if name == "" {
			continue
		}
		fmt.Fprintf(&b, "\n\n@dataclass(frozen=True)\nclass %s(Reply):\n    \"\"\"%s\"\"\"\n\n", name, c.doc)
		if c.always != "" {
			fmt.Fprintf(&b, "    _always = (\"%s\",)\n", strings.ReplaceAll(c.always, " ", `", "`))
		}
		for _, f := range c.fields() {
			full := c.name + "." + f.Name
			kind, own := pythonFields[full]
			if !own {
				kind = python(f, f.Type, names)
			}
			if kind != "" {
				fmt.Fprintf(&b, "    %s: %s\n    \"\"\"%s\"\"\"\n", pythonName(full, f.Name), kind, f.Help)
			}
		}
	}
	return b.Bytes()
}

func pythonName(full, name string) string {
	if own, found := pythonNames[full]; found {
		return own
	}
	return name
}

// python returns the type of a field and its default; nothing if Python has not the type.
func python(f wire.Field, t reflect.Type, names map[reflect.Type]string) string {
	switch t {
	case reflect.TypeFor[wire.Time]():
		return "Optional[datetime] = None"
	case reflect.TypeFor[wire.Any](), reflect.TypeFor[wire.Backoff]():
		return "Any = None"
	case reflect.TypeFor[map[string]string]():
		return "Dict[str, str] = field(default_factory=dict)"
	}
	if f.Name == "push_url" {
		return "Optional[str] = None"
	}
	if name, ours := names[t]; ours {
		if name == "" {
			return ""
		}
		return name + " = field(default_factory=" + name + ")"
	}
	switch t.Kind() {
	case reflect.String:
		return `str = ""`
	case reflect.Bool:
		return "bool = False"
	case reflect.Int64, reflect.Uint64:
		return "int = 0"
	case reflect.Float64:
		return "float = 0.0"
	case reflect.Pointer:
		return python(f, t.Elem(), names)
	case reflect.Slice:
		element, _, found := strings.Cut(python(f, t.Elem(), names), " = ")
		if !found {
			return ""
		}
		return "List[" + element + "] = field(default_factory=list)"
	}
	panic(fmt.Sprintf("api/openapi has no type of Python for %s %s", f.Name, t))
}
