package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"tarry/internal/sleep"
)

// redisSystem is one Redis that syncs its append-only file at every write, with the delay
// queue that teams write for it: bodies in a hash, a sorted set of the delayed jobs, a list
// of the ready ones, a sorted set of those in flight, and a mover. Each step is one Lua
// script, so that no crash between two commands loses a job. With replica each put and
// delete also waits until a second Redis has it in memory.
func redisSystem(replica bool) system {
	s := system{
		key: "redis", name: "Redis ×1",
		durable: "fsynced on its one node",
		command: []string{"redis-server --appendonly yes --appendfsync always --save '' --port …"},
		version: func(ctx context.Context) (string, error) {
			out, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
			text, _, _ := strings.Cut(string(out), " sha=")
			return text, err
		},
		start: func(ctx context.Context, dir string, lazy bool) (instance, error) {
			return startRedis(ctx, dir, lazy, replica)
		},
	}
	if replica {
		s.key, s.name = "redis-wait", "Redis ×2, WAIT 1"
		s.durable = "fsynced on one node, in memory on the other"
		s.command = append(s.command, "redis-server … --replicaof 127.0.0.1 …", "WAIT 1 after each put and delete")
	}
	return s
}

// redisPoll is how often the mover looks for due jobs when there were none. A longer one
// costs less and makes jobs later by half of it on average.
const redisPoll = 2 * time.Millisecond

// redisMoves bounds what one call of the mover moves, because Redis does nothing else
// meanwhile.
const redisMoves = 200

type redisServers struct {
	processes
	addr    string
	replica bool
	client  *redis.Client
	cancel  context.CancelFunc
	movers  sync.WaitGroup
	ctx     context.Context // of the movers
}

func startRedis(ctx context.Context, dir string, lazy, replica bool) (instance, error) {
	r := &redisServers{replica: replica}
	r.ctx, r.cancel = context.WithCancel(ctx)
	fsync := "always"
	if lazy {
		fsync = "everysec"
	}
	var args []string
	for _, name := range []string{"primary", "replica"} {
		if name == "replica" && !replica {
			break
		}
		addr, err := freeAddr()
		if err != nil {
			return r, err
		}
		host, port, _ := strings.Cut(addr, ":")
		err = r.launch(dir+"/"+name, "redis-server", append(args, "--bind", host, "--port", port,
			"--appendonly", "yes", "--appendfsync", fsync, "--save", "")...)
		if err == nil {
			err = answers(ctx, addr)
		}
		if err != nil {
			return r, r.explain(err)
		}
		if r.addr == "" {
			r.addr = addr
			args = []string{"--replicaof", host + " " + port}
		}
	}
	r.client = r.connect()
	for _, script := range []*redis.Script{putScript, moveScript, takeScript, finishScript} {
		if err := script.Load(ctx, r.client).Err(); err != nil {
			return r, r.explain(err)
		}
	}
	if replica {
		err := ready(ctx, func() error {
			n, err := r.client.Wait(ctx, 1, time.Second).Result()
			if err == nil && n < 1 {
				err = errors.New("the replica does not follow")
			}
			return err
		})
		if err != nil {
			return r, r.explain(err)
		}
	}
	return r, nil
}

// connect is a client with one connection.
func (r *redisServers) connect() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: r.addr, PoolSize: 1, MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: 15 * time.Second})
}

// topic starts the topic's mover, which a team runs in one of its processes.
func (r *redisServers) topic(ctx context.Context, name string) error {
	if err := r.client.Ping(ctx).Err(); err != nil {
		return err
	}
	r.movers.Go(func() {
		c := r.connect()
		defer c.Close()
		k := keysOf(name)
		for r.ctx.Err() == nil {
			n, err := c.EvalSha(r.ctx, moveScript.Hash(), []string{k.delayed, k.ready, k.leases}, time.Now().UnixMilli(), redisMoves).Int()
			if err != nil || n < redisMoves {
				sleep.For(r.ctx, redisPoll)
			}
		}
	})
	return nil
}

func (r *redisServers) stop() error {
	r.cancel()
	r.movers.Wait()
	if r.client != nil {
		r.client.Close()
	}
	return r.processes.stop()
}

func (r *redisServers) open(ctx context.Context, topic string, i int) (queue, error) {
	return &redisQueue{ctx: ctx, c: r.connect(), replica: r.replica, k: keysOf(topic), prefix: fmt.Sprintf("%d-%x-", i, time.Now().UnixNano())}, nil
}

// redisKeys are the keys of one topic.
type redisKeys struct{ bodies, delayed, ready, taken, leases string }

func keysOf(topic string) redisKeys {
	return redisKeys{topic + ":bodies", topic + ":delayed", topic + ":ready", topic + ":taken", topic + ":leases"}
}

type redisQueue struct {
	ctx     context.Context
	c       *redis.Client
	replica bool
	k       redisKeys
	prefix  string // of ids
	made    int
	held    string
}

func (q *redisQueue) Close() { q.c.Close() }

//go:embed redis_put.lua
var putLua string

//go:embed redis_move.lua
var moveLua string

//go:embed redis_take.lua
var takeLua string

//go:embed redis_finish.lua
var finishLua string

var (
	putScript    = redis.NewScript(putLua)
	moveScript   = redis.NewScript(moveLua)
	takeScript   = redis.NewScript(takeLua)
	finishScript = redis.NewScript(finishLua)
)

const (
	redisLease = time.Minute
	redisWait  = 5 * time.Second // for the replica
)

// write runs commands that change something, in one pipeline with the WAIT that
// follows them if there is a replica.
func (q *redisQueue) write(commands func(p redis.Pipeliner)) error {
	var wait *redis.Cmd
	_, err := q.c.Pipelined(q.ctx, func(p redis.Pipeliner) error {
		commands(p)
		if q.replica {
			wait = p.Do(q.ctx, "WAIT", 1, redisWait.Milliseconds())
		}
		return nil
	})
	if err == nil && wait != nil {
		if n, _ := wait.Int(); n < 1 {
			err = errors.New("the replica did not confirm the write")
		}
	}
	return err
}

func (q *redisQueue) appendPut(p redis.Pipeliner, body string, due time.Time) {
	q.made++
	at := due.UnixMilli()
	if !due.After(time.Now()) {
		at = 0
	}
	p.EvalSha(q.ctx, putScript.Hash(), []string{q.k.bodies, q.k.delayed, q.k.ready}, q.prefix+strconv.Itoa(q.made), body, at)
}

func (q *redisQueue) Put(body string, due time.Time) error {
	return q.write(func(p redis.Pipeliner) { q.appendPut(p, body, due) })
}

func (q *redisQueue) PutMany(bodies []string, due func(i int) time.Time) error {
	return q.write(func(p redis.Pipeliner) {
		for i, body := range bodies {
			q.appendPut(p, body, due(i))
		}
	})
}

// Reserve takes a ready job, or waits for one and then leases it. A consumer that dies
// between the two leaves the id in the list of taken ones.
func (q *redisQueue) Reserve() (string, error) {
	body, err := q.take("")
	if err != nil || body != "" {
		return body, err
	}
	id, err := q.c.BLMove(q.ctx, q.k.ready, q.k.taken, "RIGHT", "LEFT", time.Second).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return q.take(id)
}

// take leases the given job, or without one the next that is ready; "" means that there
// is none.
func (q *redisQueue) take(id string) (string, error) {
	until := time.Now().Add(redisLease).UnixMilli()
	got, err := q.c.EvalSha(q.ctx, takeScript.Hash(), []string{q.k.ready, q.k.taken, q.k.leases, q.k.bodies}, until, id).StringSlice()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	q.held = got[0]
	return got[1], nil
}

func (q *redisQueue) Delete() error {
	var gone *redis.Cmd
	err := q.write(func(p redis.Pipeliner) {
		gone = p.EvalSha(q.ctx, finishScript.Hash(), []string{q.k.leases, q.k.bodies}, q.held)
	})
	if err != nil {
		return err
	}
	if n, err := gone.Int(); err != nil || n != 1 {
		return fmt.Errorf("job %s was not leased: %w", q.held, err)
	}
	return nil
}
