package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tarry/client"
)

// runWorker works until a SIGTERM comes.
func runWorker(text string) error {
	var a struct {
		openArgs
		Topic       string          `json:"topic"`
		Concurrency int             `json:"concurrency"`
		TTR         client.Duration `json:"ttr"`
		Timeout     client.Duration `json:"timeout"`
		Backoff     *client.Backoff `json:"backoff"`
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	c, err := client.New(a.Addresses)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := say(object{"event": "ready"}); err != nil {
		return err
	}
	w := client.Worker{
		Client: c, Topics: []string{a.Topic}, Do: workOn, Concurrency: a.Concurrency, TTR: a.TTR.Duration, Timeout: a.Timeout.Duration, Backoff: a.Backoff,
		OnError: func(err error) { fmt.Fprintln(os.Stderr, err) },
	}
	if err := w.Run(ctx); err != nil {
		return err
	}
	return say(object{"event": "stopped"})
}

// workOn does what the body of the job says.
func workOn(ctx context.Context, j client.Reserved) error {
	var task struct {
		Work client.Duration `json:"work"`
		Fail string          `json:"fail"`
		Bury string          `json:"bury"`
	}
	if err := json.Unmarshal(j.Value, &task); err != nil {
		return err
	}
	if err := say(object{"event": "start", "id": j.ID, "attempts": j.Attempts}); err != nil {
		return err
	}
	select {
	case <-time.After(task.Work.Duration):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := say(object{"event": "end", "id": j.ID}); err != nil {
		return err
	}
	switch {
	case task.Bury != "":
		return client.Permanent(errors.New(task.Bury))
	case task.Fail != "":
		return errors.New(task.Fail)
	}
	return nil
}
