package addrlimit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneAddressCannotExcludeOthers(t *testing.T) {
	l := New(100, 50)
	greedy, other := l.Of("192.0.2.1:1"), l.Of("192.0.2.2:1")
	require.True(t, greedy.TryAcquire(50))
	require.False(t, greedy.TryAcquire(1))
	require.True(t, other.TryAcquire(50), "there is as much for others")
	require.False(t, l.Of("192.0.2.3:1").TryAcquire(1), "the whole is bounded too")
	require.Equal(t, int64(100), l.Held(), "what was refused took nothing")
	greedy.Release(50)
	require.True(t, greedy.TryAcquire(50), "it has its share again")
	greedy.Release(50)
	other.Release(50)
	require.Zero(t, l.Held())
	require.Empty(t, l.byAddr, "nothing is remembered of who is gone")
}

func TestWhatIsOneAddress(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string
		shared        bool
	}{
		"two ports":                  {"192.0.2.1:1", "192.0.2.1:2", true},
		"two addresses":              {"192.0.2.1:1", "192.0.2.2:1", false},
		"IPv4 as IPv6 writes it":     {"192.0.2.1:1", "[::ffff:192.0.2.1]:1", true},
		"a /64":                      {"[2001:db8::1]:1", "[2001:db8::ffff:1]:1", true},
		"two of them":                {"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		"zones of a link's address":  {"[fe80::1%eth0]:1", "[fe80::1%eth1]:1", true},
		"no address, of no limit":    {"@", "@", false},
		"an empty address, likewise": {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(100, 50)
			require.True(t, l.Of(c.first).TryAcquire(50))
			require.Equal(t, c.shared, !l.Of(c.second).TryAcquire(50))
		})
	}
}

func BenchmarkShare(b *testing.B) {
	l := New(1<<30, 1<<29)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		s := l.Of("192.0.2.1:1234")
		for pb.Next() {
			s.TryAcquire(4096)
			s.Release(4096)
		}
	})
}
