package push

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tarry/job"
)

// Allow lists the destinations that posts may reach. The zero value allows none.
//
// An entry is a name (hooks.example.com), all names below one (*.example.com), an
// address or a block of addresses (10.1.2.0/24), with a port behind a colon or,
// without one, for the ports 80 and 443. An IPv6 address or block with a port is in
// brackets ([fd00::/8]:8080).
//
// The check applies to the address that is dialled. It is allowed when it is in a listed
// block, or when the target's name is listed and the address is public. So a listed name
// that resolves to an internal address, now or later, is not reached.
type Allow struct {
	names  []allowedName
	blocks []allowedBlock
}

type allowedName struct {
	name  string // lower case; with below, what follows the first dot
	below bool
	ports []uint16
}

type allowedBlock struct {
	prefix netip.Prefix
	ports  []uint16
}

// ParseAllow parses entries separated by commas.
func ParseAllow(text string) (Allow, error) {
	var a Allow
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		if err := a.add(entry); err != nil {
			return Allow{}, fmt.Errorf("%q: %w", entry, err)
		}
	}
	return a, nil
}

func (a *Allow) add(entry string) error {
	if strings.Contains(entry, "://") {
		return fmt.Errorf("it is a URL; the list takes its host, with or without :port")
	}
	host, ports, err := splitEntry(entry)
	if err != nil {
		return err
	}
	if prefix, err := netip.ParsePrefix(host); err == nil {
		if prefix.Addr().Is4In6() { // it would match none: addresses are unmapped first
			return fmt.Errorf("it must be written as a block of IPv4 addresses")
		}
		a.blocks = append(a.blocks, allowedBlock{prefix.Masked(), ports})
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		a.blocks = append(a.blocks, allowedBlock{netip.PrefixFrom(ip, ip.BitLen()), ports})
		return nil
	}
	name, below := strings.CutPrefix(strings.ToLower(host), "*.")
	if !isName(name) {
		return fmt.Errorf("it is neither a name, *.name, an address nor a block of addresses, each with or without :port")
	}
	a.names = append(a.names, allowedName{name, below, ports})
	return nil
}

// splitEntry splits an entry into host and port.
func splitEntry(entry string) (host string, ports []uint16, err error) {
	host, port, found := entry, "", false
	if strings.HasPrefix(entry, "[") {
		host, port, found = strings.Cut(entry[1:], "]")
		if !found {
			return "", nil, fmt.Errorf("the bracket is not closed")
		}
		rest := port
		port, found = strings.CutPrefix(rest, ":")
		if !found && rest != "" {
			return "", nil, fmt.Errorf("%q follows the bracket", rest)
		}
	} else if strings.Count(entry, ":") == 1 {
		host, port, found = strings.Cut(entry, ":")
	}
	if !found {
		return host, []uint16{80, 443}, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", nil, fmt.Errorf("%q is no port", port)
	}
	return host, []uint16{uint16(n)}, nil
}

func isName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for _, c := range label {
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return false
			}
		}
	}
	return true
}

// Empty reports whether no destination is allowed.
func (a Allow) Empty() bool { return len(a.names) == 0 && len(a.blocks) == 0 }

// Check checks the URL of a target, as far as that is possible before its name is
// resolved. It returns errors for the client, about the field. Of an empty URL it checks
// only that push is not off.
func (a Allow) Check(field, target string) error {
	if a.Empty() {
		return job.Invalid(field, "cannot be used: push is off, because the nodes were started without --push-allow, which lists what may be reached")
	}
	if target == "" {
		return nil
	}
	_, err := a.destination(field, target)
	return err
}

// destination returns the host and port of a URL that Check accepts.
func (a Allow) destination(field, target string) (string, error) {
	u, err := parseTarget(target)
	if err != nil {
		return "", job.Invalid(field, "%w", err)
	}
	host, port := hostOf(u)
	to := net.JoinHostPort(host, strconv.Itoa(int(port)))
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && a.allowsAddress(ip, port), err != nil && a.allowsName(host, port):
		return to, nil
	case err != nil && slices.ContainsFunc(a.blocks, func(b allowedBlock) bool { return slices.Contains(b.ports, port) }):
		return to, nil // its address may be in the block
	}
	return "", job.Invalid(field, "leads to %s, which --push-allow does not list", to)
}

// parseTarget parses the URL of a target.
func parseTarget(target string) (*url.URL, error) {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return nil, fmt.Errorf("is no URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("must start with https://host or http://host")
	case u.User != nil:
		return nil, fmt.Errorf("holds a user name, which would be shown; posts are signed instead")
	case u.Fragment != "":
		return nil, fmt.Errorf("has a fragment, which is not sent")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("has %q for a port", port)
		}
	}
	if host, _ := hostOf(u); !isName(host) {
		if _, err := netip.ParseAddr(host); err != nil {
			return nil, fmt.Errorf("has %.100q for a host", host)
		}
	}
	return u, nil
}

// hostOf returns the host and port of a URL.
func hostOf(u *url.URL) (host string, port uint16) {
	host = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		return host, uint16(n)
	}
	if u.Scheme == "http" {
		return host, 80
	}
	return host, 443
}

func (a Allow) allowsName(name string, port uint16) bool {
	return slices.ContainsFunc(a.names, func(n allowedName) bool {
		if !slices.Contains(n.ports, port) {
			return false
		}
		return !n.below && name == n.name || n.below && strings.HasSuffix(name, "."+n.name)
	})
}

func (a Allow) allowsAddress(ip netip.Addr, port uint16) bool {
	ip = ip.Unmap()
	return ip.Zone() == "" && slices.ContainsFunc(a.blocks, func(b allowedBlock) bool {
		return b.prefix.Contains(ip) && slices.Contains(b.ports, port)
	})
}

// allows reports whether a connection is allowed: name is the host of the URL, ip and
// port are dialled.
func (a Allow) allows(name string, ip netip.Addr, port uint16) bool {
	return a.allowsAddress(ip, port) || a.allowsName(name, port) && isPublic(ip)
}

// publicIPv6 is the part of IPv6 that is assigned to hosts of the public internet.
var publicIPv6 = netip.MustParsePrefix("2000::/3")

// notPublic are blocks, besides those that netip knows, that do not lead to a host of the
// public internet, or embed another address. docs/push.md lists them with their sources.
var notPublic = func() (list []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"168.63.129.16/32", // Azure's platform, in every virtual network
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}()

// isPublic reports whether an address is on the public internet: not this host, this
// network, or a local service such as a cloud's metadata.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Is6() && !publicIPv6.Contains(ip) {
		return false
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// blockedError is the error of a connection that the list does not allow.
type blockedError struct{ address string }

func (e *blockedError) Error() string {
	return e.address + " may not be reached: --push-allow does not list it"
}

// dial connects to addr, a host and port as a URL names them. Each address that
// the host resolves to is checked when it is dialled, so it does not matter what
// it resolved to before.
func (a Allow) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	d := net.Dialer{Timeout: connectTimeout, Control: func(_, resolved string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(resolved)
		if err != nil || !a.allows(name, ap.Addr(), ap.Port()) {
			return &blockedError{resolved}
		}
		return nil
	}}
	return d.DialContext(ctx, network, addr)
}

// connectTimeout bounds a TCP connection in the making, and then the handshake of TLS.
const connectTimeout = 10 * time.Second

// dialTLS is dial with the handshake of TLS, which verifies the certificate.
func (a Allow) dialTLS(ctx context.Context, network, addr string, options *tls.Config) (net.Conn, error) {
	conn, err := a.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := options.Clone()
	c.ServerName = host
	secure := tls.Client(conn, c)
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}
