package push

import (
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

func parse(t testing.TB, list string) Allow {
	t.Helper()
	a, err := ParseAllow(list)
	require.NoError(t, err)
	return a
}

func TestWhatMayBeReached(t *testing.T) {
	const list = "hooks.example.com, *.trusted.example:8443 , 10.1.2.0/24:8080,127.0.0.1:9000,[fd00::/8]:80,192.0.2.7,localhost:7000"
	a := parse(t, list)
	for _, c := range []struct {
		name, address string
		want          bool
	}{
		{"hooks.example.com", "93.184.216.34:443", true},
		{"hooks.example.com", "93.184.216.34:80", true},
		{"hooks.example.com", "[2606:4700::1]:443", true},
		{"hooks.example.com", "93.184.216.34:8443", false}, // not its port
		{"other.example.com", "93.184.216.34:443", false},  // not its name
		{"xhooks.example.com", "93.184.216.34:443", false},
		{"a.hooks.example.com", "93.184.216.34:443", false},
		{"a.trusted.example", "93.184.216.34:8443", true},
		{"a.b.trusted.example", "93.184.216.34:8443", true},
		{"trusted.example", "93.184.216.34:8443", false},
		{"xtrusted.example", "93.184.216.34:8443", false},

		// A listed name with an internal address, as after DNS rebinding.
		{"hooks.example.com", "127.0.0.1:443", false},
		{"hooks.example.com", "127.8.9.1:80", false},
		{"hooks.example.com", "[::1]:443", false},
		{"hooks.example.com", "[::ffff:127.0.0.1]:443", false},
		{"hooks.example.com", "0.0.0.0:443", false},
		{"hooks.example.com", "[::]:443", false},
		{"hooks.example.com", "10.0.0.5:443", false},
		{"hooks.example.com", "172.16.0.1:443", false},
		{"hooks.example.com", "192.168.1.1:443", false},
		{"hooks.example.com", "[fd12::1]:443", false},
		{"hooks.example.com", "[::ffff:10.0.0.5]:443", false},
		{"hooks.example.com", "169.254.169.254:80", false}, // metadata of clouds
		{"hooks.example.com", "[fd00:ec2::254]:443", false},
		{"hooks.example.com", "100.100.100.200:80", false},
		{"hooks.example.com", "192.0.0.192:80", false},
		{"hooks.example.com", "[fe80::1]:443", false},
		{"hooks.example.com", "[64:ff9b::a00:1]:443", false}, // 10.0.0.1 through NAT64
		{"hooks.example.com", "[2002:a00:1::]:443", false},   // and 6to4
		{"hooks.example.com", "[::ffff:0:a00:1]:443", false}, // and SIIT
		{"hooks.example.com", "[::a00:1]:443", false},        // and in the oldest way
		{"hooks.example.com", "[2001:0:a00:1::]:443", false}, // Teredo
		{"hooks.example.com", "[3fff::1]:443", false},
		{"hooks.example.com", "[5f00::1]:443", false},
		{"hooks.example.com", "[fec0::1]:443", false},
		{"hooks.example.com", "[ff0e::1]:443", false},
		{"hooks.example.com", "[4000::1]:443", false}, // not given to anybody yet
		{"hooks.example.com", "224.0.0.1:443", false},
		{"hooks.example.com", "255.255.255.255:443", false},
		{"localhost", "127.0.0.1:7000", false}, // a name does not list an address

		{"anything", "10.1.2.200:8080", true},
		{"anything", "[::ffff:10.1.2.200]:8080", true},
		{"anything", "10.1.3.1:8080", false},
		{"anything", "10.1.2.200:80", false},
		{"127.0.0.1", "127.0.0.1:9000", true},
		{"127.0.0.1", "127.0.0.1:9001", false},
		{"anything", "[fd12::1]:80", true},
		{"anything", "192.0.2.7:443", true}, // listed, so it need not be public
		{"anything", "93.184.216.34:443", false},
	} {
		ap := netip.MustParseAddrPort(c.address)
		require.Equal(t, c.want, a.allows(c.name, ap.Addr(), ap.Port()), "%s at %s", c.name, c.address)
		require.False(t, Allow{}.allows(c.name, ap.Addr(), ap.Port()), "nothing is allowed by default")
	}
}

// Metadata services of clouds, which serve credentials, are not reached, even if a listed
// name resolves to one.
func TestTheMetadataOfCloudsIsNotReached(t *testing.T) {
	a, err := ParseAllow("hooks.example.com,*.example.org:80")
	require.NoError(t, err)
	for _, ip := range []string{
		"169.254.169.254", "169.254.170.2", "169.254.169.253", "fd00:ec2::254", "fd00:ec2::23", // Amazon: instances, containers, DNS
		"fd20:ce::254",                 // Google
		"168.63.129.16",                // Azure
		"100.100.100.200",              // Alibaba
		"192.0.0.192",                  // Oracle
		"169.254.0.23",                 // Tencent
		"169.254.42.42", "fd00:42::42", // Scaleway
		"fe80::a9fe:a9fe",                                // OpenStack
		"::ffff:169.254.169.254", "::ffff:168.63.129.16", // as IPv6
		"64:ff9b::a9fe:a9fe", "64:ff9b::a83f:8110", "2002:a83f:8110::1", // through a translator
	} {
		require.False(t, a.allows("hooks.example.com", netip.MustParseAddr(ip), 80), ip)
	}
	listed, err := ParseAllow("168.63.129.16")
	require.NoError(t, err)
	require.True(t, listed.allows("168.63.129.16", netip.MustParseAddr("168.63.129.16"), 80), "an operator may list the address itself")
}

func TestInvalidEntriesAreErrors(t *testing.T) {
	for _, bad := range []string{"http://a", "a:0", "a:70000", "a:http", "*", "*.", "a*.b", "a..b", "10.0.0.0/40", "[::1", "[::1]x", "a b", "ä.example", "a/b", "::ffff:10.0.0.0/104", "fe80::1%eth0"} {
		_, err := ParseAllow(bad)
		require.Error(t, err, bad)
	}
	require.True(t, parse(t, " , ").Empty())
	_, err := ParseAllow("a.example,https://b.example")
	require.EqualError(t, err, `"https://b.example": it is a URL; the list takes its host, with or without :port`)
}

func TestTargetsAreCheckedWhenTheyAreSet(t *testing.T) {
	a := parse(t, "hooks.example.com,10.1.2.0/24:8080")
	for _, good := range []string{
		"https://hooks.example.com", "https://HOOKS.example.com./path?x=1", "http://hooks.example.com:80/", "http://10.1.2.3:8080/x",
		"http://internal.example:8080/", // its address may be in the block; that is seen when it is dialled
	} {
		require.NoError(t, a.Check("push.url", good), good)
	}
	for bad, says := range map[string]string{
		"hooks.example.com":                  "must start with https://",
		"ftp://hooks.example.com":            "must start with https://",
		"https:hooks.example.com":            "must start with https://",
		"https://":                           "must start with https://",
		"https://user:pw@hooks.example.com":  "user name",
		"https://hooks.example.com/#x":       "fragment",
		"https://hooks.example.com:0/":       "for a port",
		"https://hooks.example.com:99999/":   "for a port",
		"https://hooks.example.com:8443/":    "hooks.example.com:8443, which --push-allow does not list",
		"https://other.example.com/":         "other.example.com:443",
		"http://127.0.0.1/":                  "127.0.0.1:80",
		"http://[::1]:8080/":                 "[::1]:8080",
		"http://169.254.169.254/latest":      "169.254.169.254:80",
		"http://10.1.3.3:8080/":              "10.1.3.3:8080",
		"http://[fe80::1%25eth0]:8080/":      "--push-allow does not list",
		"http://hooks.example.com\x7f/":      "no URL",
		"http://hööks.example.com/":          "for a host",
		"https://hooks.example.com@evil.net": "user name",
	} {
		err := a.Check("push.url", bad)
		require.Equal(t, job.CodeInvalid, job.CodeOf(err), "%s: %v", bad, err)
		require.ErrorContains(t, err, says, bad)
	}
	require.ErrorContains(t, Allow{}.Check("push.url", "https://hooks.example.com"), "--push-allow")
}

// localhost is listed, and resolves to an internal address.
func TestANameWithAnInternalAddressIsNotDialled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	_, err = parse(t, "localhost:"+port).dial(t.Context(), "tcp", "localhost:"+port)
	var blocked *blockedError
	require.ErrorAs(t, err, &blocked)
	for _, list := range []string{"127.0.0.0/8:" + port, "localhost:" + port + ",127.0.0.1:" + port} {
		conn, err := parse(t, list).dial(t.Context(), "tcp4", "localhost:"+port)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

func TestPostsUseNoProxy(t *testing.T) {
	transport := newClient(Allow{}, topicTLS()).Transport.(*http.Transport)
	require.Nil(t, transport.Proxy, "no proxy of the environment")
	require.Nil(t, transport.TLSClientConfig, "certificates are verified")
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"https://hooks.example.com/x?y#z", "http://[::1]:80", "http://a@b:c", "http://%31", "https://hooks.example.com:443:80"} {
		f.Add(s)
	}
	a := parse(f, "hooks.example.com:443")
	f.Fuzz(func(t *testing.T, target string) {
		if a.Check("push.url", target) != nil || target == "" { // a topic may have none: its jobs name theirs
			return
		}
		u, err := parseTarget(target)
		require.NoError(t, err)
		host, port := hostOf(u)
		require.Equal(t, []any{"hooks.example.com", uint16(443)}, []any{host, port})
	})
}
