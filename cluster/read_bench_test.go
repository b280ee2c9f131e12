package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Linearizable reads on a leader of three, which confirms its leadership for each.
func BenchmarkLinearizableRead(b *testing.B) {
	for _, readers := range []int{1, 64} {
		b.Run(fmt.Sprint("readers=", readers), func(b *testing.B) {
			c := newTestCluster(b, 3)
			n := c.nodes[c.leader()]
			do(b, n, add("x", "t", time.Hour))
			b.SetParallelism(readers)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := n.shard.Job(context.Background(), "x", false); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
