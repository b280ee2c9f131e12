// Command conformance is the driver of the Go client for the cases that every client must
// pass: clients/conformance/README.md says what it reads and writes.
//
// Start at main. call.go calls the methods of the client, worker.go is the worker.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"tarry/client"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "worker" {
		if err := runWorker(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// maxLine bounds a step.
const maxLine = 64 << 20

// run answers one line after the other.
func run() error {
	d := &driver{}
	defer d.close()
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, maxLine)
	for in.Scan() {
		var step struct {
			Call string          `json:"call"`
			Args json.RawMessage `json:"args"`
		}
		if err := json.Unmarshal(in.Bytes(), &step); err != nil {
			return fmt.Errorf("a line is no step: %w", err)
		}
		result, err := d.step(step.Call, step.Args)
		if err := say(reply(result, err)); err != nil {
			return err
		}
	}
	return in.Err()
}

// say writes a line.
func say(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(line, '\n'))
	return err
}

type object = map[string]any

func reply(result any, err error) any {
	if err == nil {
		return object{"ok": result}
	}
	return object{"error": failure(err)}
}

// failure is an error as the harness reads it.
func failure(err error) object {
	var e *client.Error
	if !errors.As(err, &e) {
		return object{"code": "driver", "message": err.Error()}
	}
	outcome := "not_applied"
	if e.Unknown {
		outcome = "unknown"
	}
	f := object{"code": e.Code, "outcome": outcome, "message": e.Message}
	if e.Field != "" {
		f["field"] = e.Field
	}
	return f
}

// driver holds the client of the case.
type driver struct {
	client *client.Client
	stream *streamReader // nil: none is open
}

func (d *driver) close() {
	d.closeStream()
	if d.client != nil {
		d.client.Close()
	}
}

func (d *driver) step(name string, text json.RawMessage) (any, error) {
	switch name {
	case "open":
		return with(text, d.open)
	case "stream_open":
		return with(text, d.streamOpen)
	case "stream_next":
		return with(text, d.streamNext)
	case "stream_close":
		d.closeStream()
		return nil, nil
	}
	var common struct {
		Deadline *client.Duration `json:"deadline"`
	}
	if err := json.Unmarshal(text, &common); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if common.Deadline != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, common.Deadline.Duration)
		defer cancel()
	}
	return call(ctx, d.client, name, text)
}

// with calls a function with its decoded arguments.
func with[A any](text json.RawMessage, f func(A) (any, error)) (any, error) {
	var a A
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, err
	}
	return f(a)
}

type openArgs struct {
	Addresses addresses        `json:"addresses"`
	Timeout   *client.Duration `json:"timeout"`
	Patience  *client.Duration `json:"patience"`
	TLS       *tlsArgs         `json:"tls"`

	Token         string `json:"token"`
	TokenFile     string `json:"token_file"`
	TokenOverHTTP bool   `json:"token_over_http"`
}

// addresses are a list, or a text with commas.
type addresses []string

func (a *addresses) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, (*[]string)(a)); err == nil {
		return nil
	}
	*a = make(addresses, 1)
	return json.Unmarshal(text, &(*a)[0])
}

// tlsArgs names files in PEM.
type tlsArgs struct {
	CA       string `json:"ca"`
	Cert     string `json:"cert"`
	Key      string `json:"key"`
	Insecure bool   `json:"insecure"`
}

func (a *tlsArgs) config() (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: a.Insecure}
	if a.CA != "" {
		pem, err := os.ReadFile(a.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", a.CA)
		}
	}
	if a.Cert != "" {
		own, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

func (d *driver) open(a openArgs) (any, error) {
	d.close()
	var options []client.Option
	if a.Timeout != nil {
		options = append(options, client.WithTimeout(a.Timeout.Duration))
	}
	if a.Patience != nil {
		options = append(options, client.WithPatience(a.Patience.Duration))
	}
	if a.TLS != nil {
		config, err := a.TLS.config()
		if err != nil {
			return nil, err
		}
		options = append(options, client.WithTLS(config))
	}
	if a.Token != "" {
		options = append(options, client.WithToken(a.Token))
	}
	if a.TokenFile != "" {
		options = append(options, client.WithTokenFile(a.TokenFile))
	}
	if a.TokenOverHTTP {
		options = append(options, client.WithTokenOverHTTP())
	}
	var err error
	if d.client, err = client.New(a.Addresses, options...); err != nil {
		return nil, &client.Error{Code: "invalid_argument", Message: err.Error()}
	}
	return nil, nil
}

// streamReader reads a stream on a goroutine of its own, which ends with cancel.
type streamReader struct {
	cancel context.CancelFunc
	jobs   chan streamed // closed at the end
}

type streamed struct {
	job client.Reserved
	err error
}

func (d *driver) streamOpen(a args) (any, error) {
	d.closeStream()
	want := client.StreamOptions{ReleaseOnClose: string(a["on_close"]) == `"release"`}
	if err := fill(reflect.ValueOf(&want).Elem(), a); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &streamReader{cancel: cancel, jobs: make(chan streamed)}
	go func() {
		defer close(r.jobs)
		for j, err := range d.client.Stream(ctx, want) {
			select {
			case r.jobs <- streamed{j, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	d.stream = r
	return nil, nil
}

func (d *driver) streamNext(a struct {
	Deadline client.Duration `json:"deadline"`
}) (any, error) {
	if d.stream == nil {
		return nil, errors.New("no stream is open")
	}
	var late <-chan time.Time // never
	if a.Deadline.Duration > 0 {
		late = time.After(a.Deadline.Duration)
	}
	select {
	case s, more := <-d.stream.jobs:
		if !more {
			return object{"end": true}, nil
		}
		return object{"job": s.job}, s.err
	case <-late:
		return object{"timeout": true}, nil
	}
}

func (d *driver) closeStream() {
	if d.stream == nil {
		return
	}
	d.stream.cancel()
	for range d.stream.jobs { // until the reader has ended
		continue
	}
	d.stream = nil
}
