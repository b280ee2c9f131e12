package gossip

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func full() Meta {
	return Meta{
		NodeID: "n1", ServerID: "n1.0123456789abcdef", ClusterAddr: "n1.example.net:7301", HTTPAddr: "n1.example.net:7300",
		ClusterID: strings.Repeat("c", maxClusterID), Version: "v1.2.3", Expect: 3, Protocol: 1, Epoch: 1 << 62, Fresh: true,
	}
}

func TestMetaIsDecodedAsItWasEncoded(t *testing.T) {
	otherHost := full()
	otherHost.HTTPAddr = "[2001:db8::1]:80"
	dotted := full()
	dotted.NodeID, dotted.ServerID = "a.b.c", "a.b.c.ff"
	for name, m := range map[string]Meta{
		"all fields":      full(),
		"another host":    otherHost,
		"dots in node id": dotted,
		"least":           {NodeID: "n", ServerID: "n.1", ClusterAddr: "h:1"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := m.Encode()
			require.NoError(t, err)
			got, err := DecodeMeta(b)
			require.NoError(t, err)
			require.Equal(t, m, got)

			// A later release may append fields.
			got, err = DecodeMeta(append(b, 1, 2, 3))
			require.NoError(t, err)
			require.Equal(t, m, got)

			for i := range b {
				_, err := DecodeMeta(b[:i])
				require.Error(t, err, "cut after %d bytes", i)
			}
		})
	}
}

// encoded is a record that a node would not make.
func encoded(t *testing.T, change func(*Meta)) []byte {
	m := full()
	change(&m)
	b, err := m.Encode()
	require.NoError(t, err)
	return b
}

func TestMetaIsRefused(t *testing.T) {
	valid, err := full().Encode()
	require.NoError(t, err)
	newer := append([]byte{metaVersion + 1}, valid[1:]...)
	nameless, err := Meta{ServerID: ".1", ClusterAddr: "h:1"}.Encode()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"of a node that is not ours":       {nil, "not a Tarry node"},
		"of a newer release":               {newer, "version 2"},
		"longer than gossip carries":       {append(valid, make([]byte, MaxMeta)...), "the limit is 512"},
		"without a node id":                {nameless, "lacks a node id"},
		"a terminal's escape in a version": {encoded(t, func(m *Meta) { m.Version = "v1\x1b]0;gone\a" }), "version"},
		"a line break in a node id":        {encoded(t, func(m *Meta) { m.NodeID, m.ServerID = "n\n1", "n\n1.a" }), "node id"},
		"a long node id":                   {encoded(t, func(m *Meta) { m.NodeID = strings.Repeat("n", 65); m.ServerID = m.NodeID + ".a" }), "node id"},
		"an incarnation that is a path":    {encoded(t, func(m *Meta) { m.ServerID = "n1./etc" }), "incarnation"},
		"an address without a port":        {encoded(t, func(m *Meta) { m.ClusterAddr = "n1" }), "cluster address"},
		"port 0":                           {encoded(t, func(m *Meta) { m.ClusterAddr = "n1:0" }), "port"},
		"a port past the last":             {encoded(t, func(m *Meta) { m.HTTPAddr = "n1:65536" }), "port"},
		"a host with a slash":              {encoded(t, func(m *Meta) { m.HTTPAddr = "n1/x:80" }), "host"},
		"a cluster id with a space":        {encoded(t, func(m *Meta) { m.ClusterID = "a b" }), "cluster id"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeMeta(c.data)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestMetaCheckKeepsRoomForTheClusterID(t *testing.T) {
	m := full()
	m.ClusterID = ""
	m.Version = ""
	b, err := m.Encode()
	require.NoError(t, err)
	m.Version = strings.Repeat("v", MaxMeta-len(b)-1) // one more byte of length
	_, err = m.Encode()
	require.NoError(t, err, "without a cluster id it fits")
	require.ErrorContains(t, m.Check(), "the limit is 512")
}

func FuzzDecodeMeta(f *testing.F) {
	b, err := full().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{metaVersion})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeMeta(data)
		if err != nil {
			return
		}
		// A decoded record has the same fields after another round.
		again, err := m.Encode()
		if err != nil {
			return // longer without the other side's abbreviations
		}
		got, err := DecodeMeta(again)
		if err != nil {
			t.Fatalf("%+v does not decode: %v", m, err)
		}
		if got != m {
			t.Fatalf("got %+v, want %+v", got, m)
		}
	})
}
