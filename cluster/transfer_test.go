package cluster

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestTransferThatNeverEndsIsNoticed(t *testing.T) {
	refused := fmt.Errorf("apply: %w", raft.ErrLeadershipTransferInProgress)
	const s = time.Second
	type outcome struct {
		at  time.Duration
		err error
	}
	every := func(step, until time.Duration) (list []outcome) {
		for at := time.Duration(0); at <= until; at += step {
			list = append(list, outcome{at, refused})
		}
		return list
	}
	for name, c := range map[string]struct {
		outcomes []outcome
		stuck    bool
	}{
		"a transfer that ends":              {every(s/10, s), false},
		"just at the limit":                 {every(s, transferLimit), false},
		"beyond the limit":                  {every(s, transferLimit+s), true},
		"a write went through meanwhile":    {append(every(s, 6*s), append([]outcome{{6 * s, nil}}, outcome{16 * s, refused})...), false},
		"another failure meanwhile":         {append(every(s, 9*s), outcome{10 * s, errors.New("lost")}, outcome{11 * s, refused}), false},
		"two transfers with quiet between":  {[]outcome{{0, refused}, {20 * s, refused}}, false},
		"refusals of a barrier, one second": {every(s+s/5, transferLimit+2*s), true},
	} {
		t.Run(name, func(t *testing.T) {
			var w transfers
			began := time.Now()
			var err error
			for _, o := range c.outcomes {
				err = w.record(o.err, began.Add(o.at))
			}
			require.Equal(t, c.stuck, err != nil, "%v", err)
		})
	}
}
