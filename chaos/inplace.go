package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// inPlace replaces the state of the cluster itself by the last backup, while leaders are killed.
// What the backup has must be there then, and nothing that was added after it.
type inPlace struct {
	*backups
	kills, tries int
}

func newInPlace(r *run, push string) (*inPlace, error) {
	b, err := newBackups(r, push)
	return &inPlace{backups: b}, err
}

// leftovers are jobs that are added after the last backup.
const leftovers = 200

// killsWithin bounds the time from one kill of a leader to the next while the state is replaced.
const killsWithin = 3 * time.Second

func (p *inPlace) takeOver(ctx context.Context) (*localcluster.Cluster, error) {
	c := p.run.cluster
	if err := p.addLeftovers(ctx); err != nil {
		return nil, err
	}
	killing, stop := context.WithCancel(ctx)
	var killer sync.WaitGroup
	var failed error
	killer.Go(func() { failed = p.killLeaders(killing) })
	err := localcluster.Until(ctx, func() error {
		p.tries++
		if p.tries > 3 { // a leader lives long enough now and then, and certainly in the end
			stop()
		}
		_, err := p.run.tarry(ctx, "restore", p.chain[len(p.chain)-1], "--replace", "--yes", "--no-safety-backup", "--addr", strings.Join(addresses(c), ","))
		return err
	})
	stop()
	killer.Wait()
	if err := errors.Join(err, failed, c.WaitReady(ctx, c.Nodes()...)); err != nil {
		return nil, err
	}
	return c, p.noLeftovers(ctx)
}

func leftover(i int) string { return fmt.Sprintf("leftover-%d", i) }

func (p *inPlace) addLeftovers(ctx context.Context) error {
	var jobs []map[string]any
	for i := range leftovers {
		jobs = append(jobs, map[string]any{"topic": "leftovers", "id": leftover(i), "body": "x", "delay": i % 2 * 3600})
	}
	return localcluster.Until(ctx, func() error {
		leader, err := p.run.cluster.Leader(ctx)
		if err != nil {
			return err
		}
		return p.run.cluster.Post(ctx, leader, "/v1/jobs/batch", map[string]any{"jobs": jobs}, nil)
	})
}

// noLeftovers asks every node, in turn, for what only the replaced state had.
func (p *inPlace) noLeftovers(ctx context.Context) error {
	nodes := p.run.cluster.Nodes()
	for i := range leftovers {
		var err error
		gone := localcluster.Until(ctx, func() error {
			err = p.run.cluster.Call(ctx, http.MethodGet, nodes[i%len(nodes)], "/v1/jobs/"+leftover(i), nil)
			if err == nil || strings.Contains(err.Error(), "not_found") || strings.Contains(err.Error(), "404") {
				return nil
			}
			return err
		})
		if gone != nil {
			return gone
		}
		if err == nil {
			return fmt.Errorf("%w: job %s, which was added after the backup, is there after the backup replaced the state", errBroken, leftover(i))
		}
	}
	return nil
}

// killLeaders kills each leader that it finds and starts it again.
func (p *inPlace) killLeaders(ctx context.Context) error {
	random := rand.New(rand.NewPCG(p.run.seed, 1<<40))
	for sleep.For(ctx, time.Duration(random.Int64N(int64(killsWithin)))) {
		leader, err := p.run.cluster.Leader(ctx)
		if err != nil {
			continue // there is none, or the time is over
		}
		p.kills++
		p.run.log.Info("kill -9 while the state is replaced", "node", leader.ID)
		if err := errors.Join(leader.Kill(), leader.Start()); err != nil {
			return err
		}
	}
	return nil
}

func (p *inPlace) summary() string {
	return fmt.Sprintf("%s; the state was replaced in %d tries with %d leaders killed", p.backups.summary(), p.tries, p.kills)
}
