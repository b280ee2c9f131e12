package httpx

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// hostNames are the names by which clients may call a node.
type hostNames []string

// allow reports whether a request may name the node by host, with or without a port.
//
// The host name of a page in a browser can resolve to this node's address, so that the page
// is of the same origin (DNS rebinding). Then its requests have that name. That is not
// possible with addresses and localhost. A request without a host, as in HTTP/1.0, is not
// from a browser.
func (names hostNames) allow(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || host == "localhost" {
		return true
	}
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && addr.Zone() == "" {
		return true // a zone is any text, and no client sends one
	}
	return slices.ContainsFunc(names, func(name string) bool {
		below, wild := strings.CutPrefix(name, "*")
		return strings.EqualFold(name, host) || wild && strings.HasSuffix(host, strings.ToLower(below))
	})
}

// ForHosts rejects requests whose host is not one of Options.Hosts, an IP address or
// localhost, and requests of pages of other sites. It is for other handlers than New's.
func ForHosts(hosts []string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		if !hostNames(hosts).allow(r.Host) || site != "" && site != "same-origin" && site != "none" {
			http.Error(w, "call this port by the node's address or a name in --http-hosts, and from no page of another site", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// CheckHost lets through requests whose host is one of hosts, an IP address or localhost; wrong
// responds to others.
func CheckHost(hosts []string, wrong, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hostNames(hosts).allow(r.Host) {
			wrong.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
