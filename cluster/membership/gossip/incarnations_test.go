package gossip

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"net"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/stretchr/testify/require"
)

func packet(t *testing.T, kind byte, message any) []byte {
	b := bytes.NewBuffer([]byte{kind})
	require.NoError(t, codec.NewEncoder(b, &codec.MsgpackHandle{}).Encode(message))
	return b.Bytes()
}

type claimed struct {
	Incarnation uint32
	Node, From  string
}

func compound(parts ...[]byte) []byte {
	b := []byte{packetCompound, byte(len(parts))}
	for _, p := range parts {
		b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
	}
	return append(b, bytes.Join(parts, nil)...)
}

func withChecksum(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{packetChecksum}, crc32.ChecksumIEEE(b)), b...)
}

func TestPacketsThatNoNodeCouldObjectToAreDropped(t *testing.T) {
	usual, last := packet(t, packetSuspect, claimed{7, "b", "c"}), packet(t, packetDead, claimed{math.MaxUint32, "b", "c"})
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"a usual one":                       {usual, ""},
		"with a checksum":                   {withChecksum(usual), ""},
		"a ping":                            {[]byte{0, 0x80}, ""},
		"the highest incarnation":           {last, "incarnation 4294967295"},
		"behind a checksum":                 {withChecksum(last), "incarnation 4294967295"},
		"among others":                      {compound(usual, last), "incarnation 4294967295"},
		"among others, behind a checksum":   {withChecksum(compound(usual, last)), "incarnation 4294967295"},
		"one too high":                      {packet(t, packetAlive, claimed{maxClaimed + 1, "b", "c"}), "is above"},
		"compressed":                        {packet(t, packetCompress, claimed{}), "type 9"},
		"compounds in compounds":            {compound(compound(usual)), "type 7"},
		"with a label":                      {append([]byte{packetLabel, 1, 'x'}, usual...), "type 244"},
		"a number that is not of 32 bits":   {packet(t, packetAlive, struct{ Incarnation uint64 }{1 << 40}), "overflow"},
		"a compound that is cut off":        {compound(usual, usual)[:30], "cut off"},
		"a list of lengths that is cut off": {[]byte{packetCompound, 200, 0}, "cut off"},
		"nothing":                           {nil, "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			err := claims{"a", func() { t.Error("this node is not meant") }}.packet(c.data)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestANodeLearnsThatItIsAboutToBeOverruled(t *testing.T) {
	var overruled atomic.Int32
	a := open(t, named("a", 1), func(o *Options) { o.Overruled = func() { overruled.Add(1) } })
	to, err := net.Dial("udp", "127.0.0.1:"+portOf(a.addr()))
	require.NoError(t, err)
	defer to.Close()
	eventually(t, func() bool {
		_, err := to.Write(packet(t, packetSuspect, claimed{overruledFrom + 1, a.name, "b"}))
		require.NoError(t, err)
		return overruled.Load() > 0
	})
	conn := dialGossip(t, a, "127.0.0.1")
	seen := overruled.Load()
	_, err = conn.Write([]byte(pushPull("\x01", "\x00")))
	require.NoError(t, err)
	_, err = conn.Write(packet(t, 0, struct {
		Name        string
		Incarnation uint32
	}{a.name, overruledFrom + 1})[1:])
	require.NoError(t, err)
	eventually(t, func() bool { return overruled.Load() > seen })
}

func TestRecordsOfAnExchangeThatNoNodeCouldObjectToAreRefused(t *testing.T) {
	for name, record := range map[string]any{
		"by name":  map[string]any{"Name": "b", "Incarnation": uint32(math.MaxUint32)},
		"by place": []any{"b", nil, uint16(7302), nil, uint32(math.MaxUint32), 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := claims{self: "a"}.exchange(bytes.NewReader(append([]byte(pushPull("\x01", "\x00"))[1:], packet(t, 0, record)[1:]...)))
			require.ErrorContains(t, err, "incarnation 4294967295")
		})
	}
}
