package gossip

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pushPull is the beginning of an exchange of records, with the msgpack of its counts.
func pushPull(nodes, userState string) string {
	return "\x06\x83\xa5Nodes" + nodes + "\xacUserStateLen" + userState + "\xa4Join\xc2"
}

var streamBeginnings = map[string]struct {
	data, want string
}{
	"an exchange of no records": {pushPull("\x00", "\x00"), ""},
	"an exchange of many":       {pushPull("\xcd\x04\x00", "\x00") + strings.Repeat("\x80", 1024), ""},
	"records that are none":     {pushPull("\x01", "\x00") + "records", "a record of an exchange does not decode"},
	"the highest incarnation":   {pushPull("\x01", "\x00") + "\x82\xa4Name\xa1n\xabIncarnation\xce\xff\xff\xff\xff", "incarnation 4294967295"},
	"a ping":                    {"\x00\x82", ""},
	"an answer to a ping":       {"\x02\x82", ""},
	"an error":                  {"\x0d\x81", ""},
	"a negative count":          {pushPull("\xff", "\x00"), "announces -1 nodes"},
	"a count that is too large": {pushPull("\xcd\x04\x01", "\x00"), "announces 1025 nodes; the most is 1024"},
	"data beside the records":   {pushPull("\x00", "\xce\x01\x00\x00\x00"), "announces data beside"},
	"a name of 4 GiB":           {"\x06\x81\xdb\xff\xff\xff\xff", "does not decode"},
	"a header cut short":        {"\x06\x83\xa5Nod", "does not decode"},
	"a header without an end":   {"\x06\xdf\xff\xff\xff\xff" + strings.Repeat("\xa1x\x00", 100), "does not decode"},
	"an encrypted message":      {"\x0a\x00\x00\x00\x1e\x01nonce and more", ""},
	"an encrypted nothing":      {"\x0a\x00\x00\x00\x1d\x01", "announces 29 bytes"},
	"an encrypted 16 MiB":       {"\x0a\x01\x00\x00\x00\x01", "announces 16777216 bytes"},
	"padded encryption":         {"\x0a\x00\x00\x00\x40\x00", "encryption version 0"},
	"an encrypted head cut off": {"\x0a\x00\x00", "EOF"},
	"compressed":                {"\x09\x82", "type 9, which no node sends"},
	"a user message":            {"\x08\x81", "type 8"},
	"a label":                   {"\xf4\x01x", "type 244"},
	"nothing":                   {"", "EOF"},
}

func TestTheFirstMessageOfAConnectionIsChecked(t *testing.T) {
	for name, c := range streamBeginnings {
		t.Run(name, func(t *testing.T) {
			r, err := checkStream(strings.NewReader(c.data), claims{overruled: func() {}})
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			b, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, c.data, string(b), "memberlist reads everything")
		})
	}
}

func TestTheBytesOfAConnectionAreBounded(t *testing.T) {
	r, err := checkStream(strings.NewReader(pushPull("\x00", "\x00")+strings.Repeat("x", 2*maxStreamBytes)), claims{overruled: func() {}})
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, r)
	require.NoError(t, err)
	require.EqualValues(t, maxStreamBytes, n)
}

func FuzzStreamBeginning(f *testing.F) {
	for _, c := range streamBeginnings {
		f.Add([]byte(c.data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := checkStream(bytes.NewReader(data), claims{overruled: func() {}}); err == nil {
			b, err := io.ReadAll(r)
			require.NoError(t, err)
			require.True(t, bytes.HasPrefix(data, b))
		}
	})
}

// Memberlist v0.5.4 makes a slice of the announced number of nodes, and panics if the
// number is negative.
func TestAForgedHeaderCausesNoPanic(t *testing.T) {
	p := open(t, named("a", 1))
	conn := dialGossip(t, p, "127.0.0.1")
	_, err := io.WriteString(conn, pushPull("\xff", "\x00"))
	require.NoError(t, err)
	_, err = io.ReadAll(conn)
	require.False(t, errors.Is(err, os.ErrDeadlineExceeded), "the connection stays open")
	require.Equal(t, []string{"a.1"}, ids(p))
}

func TestSilentConnectionsAreBounded(t *testing.T) {
	p := open(t, named("a", 1))
	for range maxAddrStreams {
		dialGossip(t, p, "127.0.0.2")
	}
	_, err := io.ReadAll(dialGossip(t, p, "127.0.0.2"))
	require.False(t, errors.Is(err, os.ErrDeadlineExceeded), "one more than the bound stays open")

	b := open(t, named("b", 1))
	_, err = b.list.Join([]string{"127.0.0.1:" + portOf(p.addr())})
	require.NoError(t, err, "another address may still connect")

	for i := range maxStreams / maxAddrStreams {
		for range maxAddrStreams {
			dialGossip(t, p, "127.0.0."+strconv.Itoa(3+i))
		}
	}
	// Connections that memberlist closes are not counted any more.
	eventually(t, func() bool {
		_, err := b.list.Join([]string{"127.0.0.1:" + portOf(p.addr())})
		return err == nil
	})
}

// If UDP is lost, a ping over TCP keeps a member alive, so its reply must be read.
func TestTheReplyToAPingIsRead(t *testing.T) {
	p := open(t, named("a", 1))
	conn := dialGossip(t, p, "127.0.0.1")
	_, err := io.WriteString(conn, "\x00\x81\xa5SeqNo\x07")
	require.NoError(t, err)
	r, err := checkStream(conn, claims{overruled: func() {}})
	require.NoError(t, err)
	answer, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Contains(t, string(answer), "SeqNo\x07")
}

func dialGossip(t *testing.T, p *Pool, from string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.Dial("tcp", "127.0.0.1:"+portOf(p.addr()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	return conn
}
