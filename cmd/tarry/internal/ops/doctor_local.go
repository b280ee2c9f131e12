package ops

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tarry/cluster/datadir"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/server"
	"tarry/internal/certs"
)

// machine checks the machine of a node, which may run or not.
func (c *checkup) machine(ctx context.Context, cfg *server.Config) {
	c.directory(cfg.DataDir)
	c.openFiles(cfg)
	if synced, known := clockSynced(); known && !synced {
		c.warn("clock", "", "run NTP, such as chrony or systemd-timesyncd", "the kernel says that its clock follows no time server")
	} else if known {
		c.ok("clock", "", "it follows a time server")
	}
	running := datadir.InUse(cfg.DataDir)
	c.ports(ctx, cfg, running)
	if cfg.AdvertiseHost != "" {
		c.name(ctx, "", "--advertise-host", net.JoinHostPort(cfg.AdvertiseHost, "0"))
	}
	for _, seed := range cfg.Seeds() {
		c.name(ctx, "", "--join", seed)
	}
	c.certificateFiles("cluster", cfg.ClusterTLS)
	c.certificateFiles("http", cfg.HTTPTLS.Files)
	c.certificateFiles("beanstalk", cfg.BeanstalkTLS.Files)
}

// directory checks the data directory and its disk. Until there is one, those of the nearest
// directory above it.
func (c *checkup) directory(dir string) {
	info, err := os.Stat(dir)
	at := dir
	for errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		_, err = os.Stat(at)
	}
	switch {
	case err != nil:
		c.fail("directory", "", "run it as the user of the node, or correct --data-dir", "%v", err)
		return
	case info == nil:
		c.ok("directory", "", "%s does not exist yet; the node makes it", dir)
	case !info.IsDir():
		c.fail("directory", "", "correct --data-dir", "%s is no directory", dir)
		return
	case info.Mode().Perm()&0o077 != 0:
		c.warn("directory", "", "chmod 700 "+dir, "other users may look into %s (mode %04o)", dir, info.Mode().Perm())
	default:
		c.ok("directory", "", "only its owner can read %s", dir)
	}
	c.fileSystem(mountOf(at))
	c.free(at)
	mean, slowest, err := timeSyncs(at)
	if err != nil {
		c.fail("disk", "", "run it as the user of the node, who must be able to write there", "a synced write in %s: %v", at, err)
		return
	}
	c.syncTime("disk", "", mean)
	if slowest > tooSlowSync {
		c.warn("disk", "", "look for another process that uses the disk", "the slowest of %d synced writes took %v", syncs, slowest.Round(time.Millisecond))
	}
}

// fileSystem checks a type of file systems and the options of its mount.
func (c *checkup) fileSystem(kind string, options []string) {
	lost := slices.DeleteFunc(slices.Clone(options), func(o string) bool {
		return !slices.Contains([]string{"nobarrier", "barrier=0", "data=writeback", "eatmydata", "ro"}, o)
	})
	const fix = "put the data directory on a disk of this machine, with ext4 or xfs"
	switch {
	case kind == "":
		return // it is not known here
	case kind == "tmpfs" || kind == "ramfs":
		c.fail("file system", "", fix, "%s is memory: all is lost with the machine", kind)
	case strings.HasPrefix(kind, "nfs") || slices.Contains([]string{"cifs", "smb3", "9p", "fuse.sshfs", "vboxsf"}, kind):
		c.warn("file system", "", fix, "%s is reached over a network or from a host: a sync may not mean what it says, and takes long", kind)
	case kind == "overlay":
		c.warn("file system", "", "use a volume", "overlay is the file system of a container: its data goes with the container")
	default:
		c.ok("file system", "", "%s", kind)
	}
	if len(lost) > 0 {
		c.fail("mount", "", "mount it without these options", "mounted with %s: the data does not survive a loss of power, or cannot be written", strings.Join(lost, ", "))
	}
}

// leastFree is the free space below which adds are refused, at the default mark, on a disk of
// 10 GiB or less.
const leastFree = 512 << 20

func (c *checkup) free(dir string) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		c.warn("space", "", "", "the free space cannot be read: %v", err)
		return
	}
	free, total := int64(s.Bavail)*int64(s.Bsize), int64(s.Blocks)*int64(s.Bsize)
	if mark := min(max(total/20, leastFree), 2<<30); free < mark {
		c.warn("space", "", "free space, or set --disk-low-water: below it adds are refused", "%s of %s are free", cli.ByteSize(free), cli.ByteSize(total))
		return
	}
	c.ok("space", "", "%s of %s are free", cli.ByteSize(free), cli.ByteSize(total))
}

// syncs is the number of synced writes that are measured.
const syncs = 32

// timeSyncs measures synced writes of 4 KiB, with a file that it removes.
func timeSyncs(dir string) (mean, slowest time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".tarry-doctor-*")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, 4<<10)
	var all time.Duration
	for range syncs {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, 0, err
		}
		took := time.Since(start)
		all, slowest = all+took, max(slowest, took)
	}
	return all / syncs, slowest, nil
}

func (c *checkup) openFiles(cfg *server.Config) {
	limit, err := server.OpenFilesLimit()
	if err != nil {
		c.warn("files", "", "", "%v", err)
		return
	}
	const fix = "raise it for the node: LimitNOFILE=65536 of systemd, ulimit -n, --ulimit nofile= of docker"
	files, err := server.DivideOpenFiles(limit, !cfg.PushAllow.Empty())
	switch {
	case err != nil:
		c.fail("files", "", fix, "%v", err)
	case files.Clients < cfg.MaxConnections:
		c.warn("files", "", fix, "the limit of %d here leaves %d connections of clients, fewer than --max-connections, %d", limit, files.Clients, cfg.MaxConnections)
	default:
		c.ok("files", "", "the limit here is %d", limit)
	}
}

// ports checks that the ports of a node are free, or taken by the node that runs.
func (c *checkup) ports(ctx context.Context, cfg *server.Config, running bool) {
	for _, s := range cfg.AllSettings() {
		for _, addr := range s.Listens {
			if !strings.HasPrefix(addr, server.UnixPrefix) {
				c.port(ctx, cfg, running, "--"+s.Name, addr)
			}
		}
	}
}

func (c *checkup) port(ctx context.Context, cfg *server.Config, running bool, flag, addr string) {
	used, err := isUsed(ctx, addr)
	switch {
	case err != nil:
		c.fail("port", "", "correct "+flag, "%s %s: %v", flag, addr, err)
	case used && running:
		c.ok("port", "", "%s %s is in use, as a node runs here", flag, addr)
	case used:
		c.fail("port", "", "stop what uses it (ss -ltnp), or change "+flag, "%s %s is in use, and no node runs in %s", flag, addr, cfg.DataDir)
	case running:
		c.warn("port", "", "see with which settings the node was started", "a node runs here, and %s %s is free", flag, addr)
	default:
		c.ok("port", "", "nobody listens at %s %s", flag, addr)
	}
}

// isUsed reports whether somebody listens at an address of this machine. It does not listen
// there itself: a node that starts in this moment would fail.
func isUsed(ctx context.Context, addr string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, err
	}
	if err := isOwn(ctx, host); err != nil {
		return false, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	switch {
	case err == nil:
		return true, conn.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		return false, nil
	}
	return false, err
}

// isOwn returns an error unless a host is this machine.
func isOwn(ctx context.Context, host string) error {
	if host == "" {
		return nil // all addresses
	}
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return err
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, one := range found {
		if one.IP.IsUnspecified() || one.IP.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(one.IP)
		}) {
			return nil
		}
	}
	return fmt.Errorf("%s is no address of this machine", host)
}

// certificateFiles checks the files of a port's certificate, if it has one.
func (c *checkup) certificateFiles(port string, files certs.Files) {
	if files.Cert == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err == nil && files.CA != "" {
		_, err = os.Stat(files.CA)
	}
	if err != nil {
		c.fail("certificate", "", fmt.Sprintf("correct --%s-tls-cert, --%s-tls-key and the file of the authority", port, port), "that of port %s: %v", port, err)
		return
	}
	c.certificateEnd("", port, time.Until(pair.Leaf.NotAfter))
}
