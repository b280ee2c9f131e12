package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Messages of the kernel's subsystem for queued packets: linux/netfilter/
// nfnetlink_queue.h. Numbers in attributes are big-endian, those of netlink
// itself the machine's.
const (
	messagePacket  = 3 << 8 // subsystem, message
	messageVerdict = 3<<8 | 1
	messageConfig  = 3<<8 | 2

	attributePacket  = 1  // id u32, protocol u16, hook u8
	attributeVerdict = 2  // verdict u32, id u32
	attributePayload = 10 // the first bytes of the packet
	attributeLength  = 13 // u32; given when the payload is cut

	configCommand  = 1 // command u8, unused u8, family u16
	configCopy     = 2 // bytes u32, mode u8
	configCapacity = 3 // u32

	commandBind = 1
	copyPacket  = 2

	verdictDrop   = 0
	verdictAccept = 1
)

const (
	copyBytes     = 20      // enough for the kernel to report the packet's length
	queueCapacity = 1 << 14 // packets that the kernel holds for a line; more are dropped
	socketBuffer  = 8 << 20
	headerBytes   = 4 // family, version, queue number
)

// queue is a netfilter queue of a namespace. Packets bypass a queue without a reader, see
// Network.table.
type queue struct {
	number uint16
	socket *os.File
	buffer []byte
}

func openQueue(namespace string, number uint16) (*queue, error) {
	var fd int
	err := inside(namespace, func() (err error) {
		fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Beyond the usual limit, which root may exceed.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer)
	if err == nil {
		// If the buffer is full packets are lost, as on any network. That is not a failure
		// of the reader.
		err = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_NO_ENOBUFS, 1)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare a netlink socket: %w", err), unix.Close(fd))
	}
	q := &queue{number: number, socket: os.NewFile(uintptr(fd), "netfilter queue"), buffer: make([]byte, 1<<16)}
	if err := q.configure(); err != nil {
		return nil, errors.Join(fmt.Errorf("set up netfilter queue %d: %w", number, err), q.close())
	}
	return q, nil
}

func (q *queue) configure() error {
	bind := []byte{commandBind, 0, 0, 0}
	mode := binary.BigEndian.AppendUint32(nil, copyBytes)
	mode = append(mode, copyPacket)
	capacity := binary.BigEndian.AppendUint32(nil, queueCapacity)
	for _, a := range []struct {
		kind uint16
		data []byte
	}{{configCommand, bind}, {configCopy, mode}, {configCapacity, capacity}} {
		if err := q.write(messageConfig, unix.NLM_F_ACK, a.kind, a.data); err != nil {
			return err
		}
		if err := q.acknowledged(); err != nil {
			return err
		}
	}
	return nil
}

// acknowledged reads the reply to a configuration. No packet arrives before there are rules
// that send packets here.
func (q *queue) acknowledged() error {
	if err := q.deadline(time.Now().Add(teardown)); err != nil {
		return err
	}
	n, err := q.socket.Read(q.buffer)
	if err != nil {
		return err
	}
	m := q.buffer[:n]
	if len(m) < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(m[4:]) != unix.NLMSG_ERROR {
		return errors.New("unknown reply of the kernel")
	}
	if code := int32(binary.NativeEndian.Uint32(m[unix.NLMSG_HDRLEN:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

func (q *queue) write(kind, flags, attribute uint16, data []byte) error {
	m := make([]byte, unix.NLMSG_HDRLEN, 64)
	m = append(m, unix.AF_UNSPEC, 0)
	m = binary.BigEndian.AppendUint16(m, q.number)
	m = binary.NativeEndian.AppendUint16(m, uint16(4+len(data)))
	m = binary.NativeEndian.AppendUint16(m, attribute)
	m = append(m, data...)
	for len(m)%4 != 0 {
		m = append(m, 0)
	}
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], kind)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|flags)
	_, err := q.socket.Write(m)
	return err
}

// verdict accepts or drops a packet.
func (q *queue) verdict(id uint32, accept bool) error {
	what := uint32(verdictDrop)
	if accept {
		what = verdictAccept
	}
	data := binary.BigEndian.AppendUint32(nil, what)
	return q.write(messageVerdict, 0, attributeVerdict, binary.BigEndian.AppendUint32(data, id))
}

// deadline is when a receive that blocks, now or later, fails with
// os.ErrDeadlineExceeded; zero: never.
func (q *queue) deadline(t time.Time) error { return q.socket.SetReadDeadline(t) }

// receive blocks until packets arrive or the deadline has passed.
func (q *queue) receive() ([]packet, error) {
	n, err := q.socket.Read(q.buffer)
	if err != nil {
		return nil, err
	}
	var packets []packet
	for m := q.buffer[:n]; len(m) >= unix.NLMSG_HDRLEN; {
		size := int(binary.NativeEndian.Uint32(m))
		if size < unix.NLMSG_HDRLEN+headerBytes || size > len(m) {
			return nil, errors.New("unknown message of the kernel")
		}
		if binary.NativeEndian.Uint16(m[4:]) == messagePacket {
			packets = append(packets, parsePacket(m[unix.NLMSG_HDRLEN+headerBytes:size]))
		}
		m = m[min(len(m), (size+3)&^3):]
	}
	return packets, nil
}

func parsePacket(attributes []byte) packet {
	var p packet
	for a := attributes; len(a) >= 4; {
		size, kind := int(binary.NativeEndian.Uint16(a)), binary.NativeEndian.Uint16(a[2:])
		if size < 4 || size > len(a) {
			break
		}
		data := a[4:size]
		switch {
		case kind == attributePacket && len(data) >= 4:
			p.id = binary.BigEndian.Uint32(data)
		case kind == attributeLength && len(data) >= 4:
			p.size = int(binary.BigEndian.Uint32(data))
		case kind == attributePayload && p.size == 0:
			p.size = len(data)
		}
		a = a[min(len(a), (size+3)&^3):]
	}
	return p
}

func (q *queue) close() error { return q.socket.Close() }
