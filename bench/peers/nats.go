package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsSystem is three servers of the given binary with a stream of three replicas. A job
// due later is a message with a schedule; the server publishes it to the topic's subject at
// its time. Consumers pull one message at a time and confirm it with a double ack.
func natsSystem(binary string) system {
	return system{
		key: "nats", name: "NATS JetStream ×3, R3",
		durable: "fsynced on two of three servers",
		command: []string{
			"nats-server -c nats.conf (three servers; jetstream { sync_interval: always }; cluster { … })",
			"stream: 3 replicas, file storage, work-queue retention, message schedules allowed",
		},
		version: func(ctx context.Context) (string, error) {
			out, err := exec.CommandContext(ctx, binary, "-v").Output()
			return strings.TrimSpace(string(out)), err
		},
		start: func(ctx context.Context, dir string, lazy bool) (instance, error) {
			return startNATS(ctx, binary, dir, lazy)
		},
	}
}

type natsServers struct {
	processes
	urls  []string
	admin *nats.Conn
	js    jetstream.JetStream
}

const (
	natsStream = "JOBS"
	natsConfig = `
server_name: n%d
listen: "%s"
jetstream { store_dir: "%s", sync_interval: %s, max_file_store: 50G }
cluster { name: peers, listen: "%s", routes: [%s] }
`
)

func startNATS(ctx context.Context, binary, dir string, lazy bool) (instance, error) {
	n := &natsServers{}
	var clients, routes, quoted []string
	for range 3 {
		client, err1 := freeAddr()
		route, err2 := freeAddr()
		if err := errors.Join(err1, err2); err != nil {
			return n, err
		}
		clients, routes = append(clients, client), append(routes, route)
		quoted = append(quoted, strconv.Quote("nats://"+route))
		n.urls = append(n.urls, "nats://"+client)
	}
	interval := "always"
	if lazy {
		interval = `"2m"` // the default
	}
	for i := range clients {
		own := filepath.Join(dir, fmt.Sprintf("n%d", i+1))
		config := filepath.Join(dir, fmt.Sprintf("n%d.conf", i+1))
		text := fmt.Sprintf(natsConfig, i+1, clients[i], filepath.Join(own, "store"), interval, routes[i], strings.Join(quoted, ", "))
		if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
			return n, err
		}
		if err := n.launch(own, binary, "-c", config); err != nil {
			return n, err
		}
	}
	if err := n.makeStream(ctx); err != nil {
		return n, n.explain(err)
	}
	return n, nil
}

// makeStream waits until the servers have a leader that makes it.
func (n *natsServers) makeStream(ctx context.Context) (err error) {
	if err := ready(ctx, func() error {
		n.admin, err = nats.Connect(strings.Join(n.urls, ","))
		return err
	}); err != nil {
		return err
	}
	if n.js, err = jetstream.New(n.admin); err != nil {
		return err
	}
	return ready(ctx, func() error {
		call, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := n.js.CreateOrUpdateStream(call, jetstream.StreamConfig{
			Name: natsStream, Subjects: []string{"schedule.>", "due.>"},
			Replicas: 3, Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy,
			AllowMsgSchedules: true,
		})
		return err
	})
}

func (n *natsServers) topic(ctx context.Context, name string) error {
	return ready(ctx, func() error {
		call, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := n.js.CreateOrUpdateConsumer(call, natsStream, jetstream.ConsumerConfig{
			Durable: name, FilterSubject: "due." + name, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: time.Minute, MaxAckPending: 100_000,
		})
		return err
	})
}

func (n *natsServers) stop() error {
	if n.admin != nil {
		n.admin.Close()
	}
	return n.processes.stop()
}

// open spreads the connections over the servers.
func (n *natsServers) open(ctx context.Context, topic string, i int) (queue, error) {
	nc, err := nats.Connect(n.urls[i%len(n.urls)])
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &natsQueue{ctx: ctx, nc: nc, js: js, topic: topic, prefix: fmt.Sprintf("schedule.%s.%d-%x-", topic, i, time.Now().UnixNano())}, nil
}

type natsQueue struct {
	ctx    context.Context
	nc     *nats.Conn
	js     jetstream.JetStream
	topic  string
	prefix string // of subjects of schedules: each job has its own
	made   int

	pull jetstream.MessagesContext // nil until the first reserve
	held jetstream.Msg
}

func (q *natsQueue) Close() {
	if q.pull != nil {
		q.pull.Stop()
	}
	q.nc.Close()
}

// message is published to the topic directly when it is due.
func (q *natsQueue) message(body string, due time.Time) *nats.Msg {
	if !due.After(time.Now()) {
		return &nats.Msg{Subject: "due." + q.topic, Data: []byte(body)}
	}
	q.made++
	m := nats.NewMsg(q.prefix + strconv.Itoa(q.made))
	m.Header.Set("Nats-Schedule", "@at "+due.UTC().Format(time.RFC3339Nano))
	m.Header.Set("Nats-Schedule-Target", "due."+q.topic)
	m.Data = []byte(body)
	return m
}

const natsCallLimit = 15 * time.Second

func (q *natsQueue) Put(body string, due time.Time) error {
	ctx, cancel := context.WithTimeout(q.ctx, natsCallLimit)
	defer cancel()
	_, err := q.js.PublishMsg(ctx, q.message(body, due))
	return err
}

// PutMany publishes asynchronously and waits for all acks.
func (q *natsQueue) PutMany(bodies []string, due func(i int) time.Time) error {
	acks := make([]jetstream.PubAckFuture, len(bodies))
	for i, body := range bodies {
		ack, err := q.js.PublishMsgAsync(q.message(body, due(i)))
		if err != nil {
			return err
		}
		acks[i] = ack
	}
	limit := time.NewTimer(natsCallLimit)
	defer limit.Stop()
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return err
		case <-q.ctx.Done():
			return q.ctx.Err()
		case <-limit.C:
			return errors.New("no ack in time")
		}
	}
	return nil
}

func (q *natsQueue) Reserve() (string, error) {
	if q.pull == nil {
		consumer, err := q.js.Consumer(q.ctx, natsStream, q.topic)
		if err != nil {
			return "", err
		}
		if q.pull, err = consumer.Messages(jetstream.PullMaxMessages(1)); err != nil {
			return "", err
		}
	}
	wait, cancel := context.WithTimeout(q.ctx, time.Second)
	defer cancel()
	m, err := q.pull.Next(jetstream.NextContext(wait))
	if errors.Is(err, context.DeadlineExceeded) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	q.held = m
	return string(m.Data()), nil
}

// Delete waits until the ack is acknowledged, as a delete is by the other systems.
func (q *natsQueue) Delete() error {
	ctx, cancel := context.WithTimeout(q.ctx, natsCallLimit)
	defer cancel()
	return q.held.DoubleAck(ctx)
}
