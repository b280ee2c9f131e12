package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// slots is the number of networks that a machine can have at once.
const slots = 64

const (
	namespaceDir = "/run/netns" // where `ip netns` keeps its names
	resolverDir  = "/etc/netns" // and looks for the files of each name
)

// slot is the number of one network among those of other runs on this machine. Its names and
// its /24 follow from it. The run that holds the lock on the slot's file owns everything with
// its names. The lock ends with the process, so that others can remove the leftovers of a
// killed run.
type slot struct {
	number int
	lock   *os.File
}

// takeSlot locks the first free slot whose addresses are not in use, and removes the
// leftovers of killed runs, also in its own slot.
func takeSlot(ctx context.Context) (*slot, error) {
	var mine *slot
	for n := range slots {
		s, err := lockSlot(n)
		if err != nil {
			return nil, errors.Join(err, mine.release(ctx))
		}
		if s == nil {
			continue
		}
		if err := s.clean(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("remove the leftovers of a killed run: %w", err), s.unlock(), mine.release(ctx))
		}
		free, err := s.free()
		if err == nil && free && mine == nil {
			mine = s
			continue
		}
		if err := errors.Join(err, s.unlock()); err != nil {
			return nil, errors.Join(err, mine.release(ctx))
		}
	}
	if mine == nil {
		return nil, fmt.Errorf("all %d networks of this machine are in use", slots)
	}
	return mine, nil
}

// lockSlot returns nil if another run holds the slot.
func lockSlot(n int) (*slot, error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("tarry-network-%d.lock", n)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock a network: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &slot{n, f}, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock a network: %w", err)
}

// base returns the prefix of the names of the slot's namespaces.
func (s *slot) base() string { return fmt.Sprintf("tarry%d-", s.number) }

func (s *slot) namespace(id string) string { return s.base() + id }

// device is the machine's own end of the connection to the bridge.
func (s *slot) device() string { return fmt.Sprintf("tarry%d", s.number) }

// prefix returns the slot's /24. Clients and the nodes' addresses for clients are in its
// lower half, the addresses among nodes in the upper half.
func (s *slot) prefix() netip.Prefix {
	return netip.PrefixFrom(s.address(0), 24)
}

func (s *slot) address(host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 199, byte(s.number), byte(host)})
}

// clean removes all namespaces of the slot, and with them their devices.
func (s *slot) clean(ctx context.Context) error {
	var errs []error
	names, err := matching(namespaceDir, s.base())
	errs = append(errs, err)
	for _, name := range names {
		errs = append(errs, ip(ctx, "", "netns del "+name))
	}
	names, err = matching(resolverDir, s.base())
	errs = append(errs, err)
	for _, name := range names {
		errs = append(errs, os.RemoveAll(filepath.Join(resolverDir, name)))
	}
	// The kernel removes our end of the connection some time after the other end. Here the
	// slot must be free at once.
	if _, err := net.InterfaceByName(s.device()); err == nil {
		if err := ip(ctx, "", "link del "+s.device()); err != nil && !strings.Contains(err.Error(), "Cannot find device") {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// release cleans and unlocks the slot. For a nil slot it does nothing.
func (s *slot) release(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return errors.Join(s.clean(ctx), s.unlock())
}

// unlock does not remove the file: otherwise two runs could lock files of the same name.
func (s *slot) unlock() error { return s.lock.Close() }

func matching(dir, base string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), base) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// free reports whether this machine is on no network with the slot's addresses.
func (s *slot) free() (bool, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("list this machine's addresses: %w", err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Overlaps(s.prefix()) {
			return false, nil
		}
	}
	return true, nil
}
