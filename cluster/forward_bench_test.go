package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"tarry/job/jobpb"
)

// Adds and reads on a follower of three.
func BenchmarkForwarded(b *testing.B) {
	c := newTestCluster(b, 3)
	leader := c.leader()
	n := c.nodes[(leader+1)%3]
	do(b, c.nodes[leader], add("x", "t", time.Hour))
	var ids atomic.Int64
	for name, call := range map[string]func() error{
		"add": func() error {
			_, err := n.shard.Do(context.Background(), []*jobpb.Op{add(fmt.Sprint("j", ids.Add(1)), "t", time.Hour)})
			return err
		},
		"read": func() error {
			_, err := n.shard.Job(context.Background(), "x", false)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(64)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := call(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
