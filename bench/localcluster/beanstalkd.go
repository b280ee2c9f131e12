package localcluster

import (
	"context"
	"fmt"
	"net"
	"os"
)

// NewBeanstalkd is one real beanstalkd in the place of a cluster, to compare
// with. binary is its program; with fsync it keeps a binlog below dir that it
// syncs at every write, without it keeps jobs in memory. It starts nothing. Of
// the cluster's methods, those that speak HTTP do not apply.
func NewBeanstalkd(binary, dir string, fsync bool) (*Cluster, error) {
	c := &Cluster{options: Options{Binary: binary, Dir: dir, Nodes: 1}, client: operators}
	n, err := c.place("beanstalkd")
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(n.Beanstalk)
	if err != nil {
		return nil, err
	}
	n.args = []string{"-l", host, "-p", port}
	if fsync {
		if err := os.MkdirAll(n.DataDir(), 0o755); err != nil {
			return nil, fmt.Errorf("make a directory for the binlog: %w", err)
		}
		n.args = append(n.args, "-b", n.DataDir(), "-f", "0")
	}
	c.nodes = []*Node{n}
	return c, nil
}

// WaitListening waits until the given nodes take connections of beanstalkd
// clients.
func (c *Cluster) WaitListening(ctx context.Context, nodes ...*Node) error {
	var d net.Dialer
	for _, n := range nodes {
		err := Until(ctx, func() error {
			if !n.Running() {
				return fmt.Errorf("%s is not running; its log is %s", n.ID, n.LogPath())
			}
			nc, err := d.DialContext(ctx, "tcp", n.Beanstalk)
			if err != nil {
				return err
			}
			return nc.Close()
		})
		if err != nil {
			return fmt.Errorf("%s does not listen: %w", n.ID, err)
		}
	}
	return nil
}
