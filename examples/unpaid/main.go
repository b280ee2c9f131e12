// Command unpaid is a small shop that closes orders which nobody has paid in time. It is the
// application of docs/tutorial.md.
//
//	go run ./examples/unpaid -nodes 127.0.0.1:7300 -after 30m
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"tarry/client"
)

// shop keeps its orders in memory. Yours has a database.
type shop struct {
	queue *client.Client
	after time.Duration

	mu     sync.Mutex
	orders map[string]string // number to "unpaid", "paid" or "closed"
}

// move changes an order's state, if it has the state from, and returns its state.
func (s *shop) move(number, from, to string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orders[number] == from {
		s.orders[number] = to
	}
	return s.orders[number]
}

// order takes an order. The job goes first: a job without an order does nothing, but an
// order without a job would stay open.
func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	number := r.PathValue("number")
	_, err := s.queue.Add(r.Context(), client.NewJob{
		Topic: "unpaid", ID: "close-" + number, Delay: s.after, Body: client.Text(number),
		MaxAttempts: new(uint32(5)),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s.show(w, number, s.move(number, "", "unpaid"))
}

// pay takes a payment, and cancels the job. If that fails, the job finds the order paid.
func (s *shop) pay(w http.ResponseWriter, r *http.Request) {
	number := r.PathValue("number")
	state := s.move(number, "unpaid", "paid")
	if state == "paid" {
		if err := s.queue.Delete(r.Context(), client.Ref{ID: "close-" + number}); err != nil {
			log.Printf("order %s: %v", number, err)
		}
	}
	s.show(w, number, state)
}

// closeUnpaid is called for each job, at least once.
func (s *shop) closeUnpaid(_ context.Context, j client.Reserved) error {
	number := string(j.Bytes())
	log.Printf("order %s is %s", number, s.move(number, "unpaid", "closed"))
	return nil
}

func (s *shop) show(w http.ResponseWriter, number, state string) {
	_ = json.NewEncoder(w).Encode(map[string]string{"order": number, "state": state}) // fails if the client is gone
}

func main() {
	nodes := flag.String("nodes", "127.0.0.1:7300", "addresses of Tarry, separated by commas")
	listen := flag.String("listen", "127.0.0.1:8080", "address of the shop")
	after := flag.Duration("after", 30*time.Minute, "how long an order may stay unpaid")
	flag.Parse()
	queue, err := client.New(strings.Split(*nodes, ","))
	if err != nil {
		log.Fatal(err)
	}
	s := &shop{queue: queue, after: *after, orders: map[string]string{}}
	http.HandleFunc("POST /orders/{number}", s.order)
	http.HandleFunc("POST /orders/{number}/payment", s.pay)
	http.HandleFunc("GET /orders/{number}", func(w http.ResponseWriter, r *http.Request) {
		s.show(w, r.PathValue("number"), s.move(r.PathValue("number"), "unpaid", "unpaid"))
	})
	go func() { log.Fatal(http.ListenAndServe(*listen, nil)) }() //nolint:gosec // an example
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Println("the shop is at", *listen)
	w := client.Worker{Client: queue, Topics: []string{"unpaid"}, Concurrency: 4, Do: s.closeUnpaid}
	if err := w.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}
