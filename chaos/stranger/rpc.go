package stranger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
)

// rawMessages is a gRPC codec that sends bytes unchanged.
type rawMessages struct{}

func (rawMessages) Name() string                  { return "proto" }
func (rawMessages) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawMessages) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

// callLimit bounds a call. A node refuses a call at once.
const callLimit = time.Second

var errNotTaken = errors.New("the node does not accept this stranger's calls")

// connect opens a connection of a kind between nodes.
func (s *Stranger) connect(ctx context.Context, kind byte, who identity) (net.Conn, error) {
	c, err := s.dial(ctx, s.Target.Cluster)
	if err != nil {
		return nil, err
	}
	r, err := greet(c, kind, who)
	if err == nil && r.status == accepted {
		return c, nil
	}
	c.Close()
	return nil, errors.Join(errNotTaken, err)
}

// The kinds of frames that a call needs.
const (
	frameCall  byte = 1
	frameReply byte = 5
)

// callFrame is the frame of a call.
func callFrame(method string, in []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+1+1+len(method)+len(in)))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 1, frameCall, byte(len(method)))
	return append(append(b, method...), in...)
}

// callQueue makes a call about queues, in frames.
func (s *Stranger) callQueue(ctx context.Context, who identity, method string, in []byte) (out []byte, err error) {
	c, err := s.connect(ctx, forFrames, who)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(callLimit)); err != nil {
		return nil, err
	}
	if _, err := c.Write(callFrame("/tarry.node.v1.Node/"+method, in)); err != nil {
		return nil, err
	}
	var head [13]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	if kind := head[12]; kind != frameReply {
		return nil, fmt.Errorf("the call ended with a frame of kind %d", kind)
	}
	out = make([]byte, binary.BigEndian.Uint32(head[:])-9)
	_, err = io.ReadFull(c, out)
	return out, err
}

// callMember makes a call about members, with gRPC.
func (s *Stranger) callMember(ctx context.Context, who identity, method string, in []byte) (out []byte, err error) {
	conn, err := grpc.NewClient("passthrough:///"+s.Target.Cluster,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.connect(ctx, forRPC, who) }))
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err = conn.Invoke(ctx, "/tarry.member.v1.Membership/"+method, in, &out, grpc.ForceCodec(rawMessages{}))
	return out, err
}

// rpcRead reads topics with an identity that no member has.
func rpcRead(ctx context.Context, s *Stranger) error {
	page := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 10) // at most 10
	in := protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), page)
	ids, err := s.outsiders(ctx)
	if err != nil {
		return err
	}
	for _, who := range ids {
		if out, err := s.callQueue(ctx, who, "Read", in); err == nil {
			return believed("a read of topics by a node of cluster %q was answered with %d bytes", who.cluster, len(out))
		}
	}
	return nil
}

// operation returns a run of one operation, as nodes send it.
func operation(field protowire.Number, content []byte) []byte {
	op := protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), content)
	return protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), op)
}

// text returns a message with a string as its first field.
func text(s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), s)
}

// onlyTheLeaders are operations that no client may request.
func onlyTheLeaders() map[string][]byte {
	return map[string][]byte{
		"advance":       operation(10, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)),
		"mark":          operation(11, text("stranger")),
		"set-cluster":   operation(12, text(foreign)),
		"forget-member": operation(13, text("stranger.0000000000000000")),
		"admit-node":    operation(33, text("stranger")),
		// The use of an invitation by a server.
		"end-invitation": operation(35, protowire.AppendString(protowire.AppendTag(text("stranger"), 2, protowire.BytesType), "stranger.0000000000000000")),
	}
}

// rpcPropose asks the leader to commit operations that only a leader itself may propose,
// and, with an identity that no member has, operations that clients may request.
func rpcPropose(ctx context.Context, s *Stranger) error {
	ids, err := s.identities(ctx)
	if err != nil {
		return err
	}
	for _, who := range ids {
		for name, ops := range onlyTheLeaders() {
			if err := s.propose(ctx, who, name, ops); err != nil {
				return err
			}
		}
	}
	kick := operation(9, text("stranger"))
	for _, who := range ids[:2] {
		if err := s.propose(ctx, who, "kick", kick); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stranger) propose(ctx context.Context, who identity, name string, ops []byte) error {
	in := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 1)
	in = protowire.AppendBytes(protowire.AppendTag(in, 3, protowire.BytesType), ops)
	if _, err := s.callQueue(ctx, who, "Propose", in); err == nil {
		return believed("the operation %s of a node of cluster %q was committed", name, who.cluster)
	}
	return nil
}

// rpcMembership makes operators' calls with an identity that no member has.
func rpcMembership(ctx context.Context, s *Stranger) error {
	ids, err := s.outsiders(ctx)
	if err != nil {
		return err
	}
	for _, who := range ids {
		for method, in := range map[string][]byte{"Members": nil, "Remove": text("nobody"), "Transfer": nil} {
			out, err := s.callMember(ctx, who, method, in)
			if err == nil {
				return believed("the call %s of a node of cluster %q was answered with %d bytes", method, who.cluster, len(out))
			}
		}
	}
	return nil
}
