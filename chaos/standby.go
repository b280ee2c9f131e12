package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

const (
	// standbyPause is the time between two looks at the standby.
	standbyPause = time.Second
	// standbyLife is after how many looks it is killed and started again.
	standbyLife = 20
)

// standby is a successor of one node that follows the cluster. It is killed now and then, and made
// again when the log of its primary no longer has what it lacks.
type standby struct {
	run     *run
	cluster *localcluster.Cluster

	kills, seeds int
	reason       error // why the last seed could not be made
}

func newStandby(r *run, push string) (*standby, error) {
	c, err := r.successorCluster(1, push)
	return &standby{run: r, cluster: c}, err
}

func (s *standby) node() *localcluster.Node { return s.cluster.Nodes()[0] }

// begin waits for the cluster version that a primary needs.
func (s *standby) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return localcluster.Until(ctx, func() error { return s.seed(ctx) })
}

// seed makes the standby from a new backup of its primary, and starts it.
func (s *standby) seed(ctx context.Context) error {
	if s.node().Running() {
		if err := s.node().Kill(); err != nil {
			return err
		}
	}
	if err := s.node().Wipe(); err != nil {
		return err
	}
	file := filepath.Join(s.run.dir, "seed.backup")
	defer func() { _ = os.Remove(file) }() // it is not there if the backup failed
	if _, err := s.run.backUp(ctx, file); err != nil {
		return err
	}
	if _, err := s.run.tarry(ctx, "restore", file, "--standby", "--data-dir", s.node().DataDir(), "--node-id", s.node().ID); err != nil {
		return err
	}
	s.seeds++
	return s.start()
}

// start starts the standby with the present addresses of its primary, which faults change.
func (s *standby) start() error {
	s.node().Setenv("TARRY_FOLLOW", "http://"+strings.Join(addresses(s.run.cluster), ",http://"))
	return s.node().Start()
}

// standbyStatus is the answer of GET /v1/cluster/standby.
type standbyStatus struct {
	Connected  bool
	Reseed     bool
	Problem    string
	LagEntries uint64 `json:"lag_entries"`
}

func (s *standby) status(ctx context.Context) (st standbyStatus, err error) {
	err = s.cluster.Get(ctx, s.node(), "/v1/cluster/standby", &st)
	return st, err
}

func (s *standby) follow(ctx context.Context) error {
	for looks := 1; sleep.For(ctx, standbyPause); looks++ {
		if err := s.look(ctx, looks%standbyLife == 0); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// look makes the standby again where that is needed, and kills it where that is asked for.
func (s *standby) look(ctx context.Context, kill bool) error {
	switch st, err := s.status(ctx); {
	case err == nil && st.Reseed, !s.node().Running():
		s.reason = s.seed(ctx) // a fault may be in the way; then the next look tries again
	case kill:
		s.kills++
		if err := s.node().Kill(); err != nil {
			return err
		}
		return s.start()
	}
	return nil
}

// catchUp waits until the standby has all of the primary's log.
func (s *standby) catchUp(ctx context.Context) error {
	if err := s.look(ctx, true); err != nil { // with the addresses that the nodes have now
		return err
	}
	return localcluster.Until(ctx, func() error {
		if err := s.look(ctx, false); err != nil {
			return err
		}
		st, err := s.status(ctx)
		if err == nil && (!st.Connected || st.LagEntries > 0) {
			err = fmt.Errorf("the standby is not caught up: %+v", st)
		}
		return err
	})
}

func (s *standby) takeOver(ctx context.Context) (*localcluster.Cluster, error) {
	if err := s.run.cluster.Stop(); err != nil {
		return nil, err
	}
	err := localcluster.Until(ctx, func() error {
		_, err := s.run.tarry(ctx, "standby", "promote", "--yes", "--addr", s.node().HTTP)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: the standby cannot be promoted: %w", errBroken, err)
	}
	return s.cluster, s.cluster.WaitReady(ctx, s.node())
}

func (s *standby) stop() error { return s.cluster.Stop() }

func (s *standby) summary() string {
	text := fmt.Sprintf("made %d times from a backup, killed %d times, promoted", s.seeds, s.kills)
	if s.reason != nil {
		text += fmt.Sprintf(" (could not be made: %v)", s.reason)
	}
	return text
}
