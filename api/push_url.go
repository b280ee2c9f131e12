package api

import (
	"net/url"
	"strings"
)

// hiddenValue stands for a part of a URL that is not shown.
const hiddenValue = "***"

// shownURL is the URL of a target as clients see it: without the values of its
// query, which often are keys.
func shownURL(target string) string {
	path, query, found := strings.Cut(target, "?")
	if !found || query == "" {
		return target
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, hasValue := strings.Cut(part, "=")
		switch {
		case hasValue:
			parts[i] = name + "=" + hiddenValue
		case part != "":
			parts[i] = hiddenValue
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// hidesValue reports whether a URL has the mark of a value that was not shown.
func hidesValue(target string) bool {
	_, query, _ := strings.Cut(target, "?")
	return strings.Contains(query, hiddenValue)
}

// sameServer reports whether two URLs lead to one server in one way: they have the
// scheme, the host and the port in common.
func sameServer(a, b string) bool {
	u, err := url.Parse(a)
	if err != nil {
		return false
	}
	v, err := url.Parse(b)
	return err == nil && u.Scheme == v.Scheme && strings.EqualFold(u.Hostname(), v.Hostname()) && portOf(u) == portOf(v)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}
