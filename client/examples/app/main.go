// Command app adds a job a second and works on them, whichever node of the cluster dies:
//
//	go run ./client/examples/app 127.0.0.1:7300 127.0.0.1:7310 127.0.0.1:7320
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tarry/client"
)

func main() {
	nodes := []string{"127.0.0.1:7300"}
	if len(os.Args) > 1 {
		nodes = os.Args[1:]
	}
	c, err := client.New(nodes)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go produce(ctx, c)
	w := client.Worker{Client: c, Topics: []string{"mail"}, Do: send, Concurrency: 4, TTR: 10 * time.Second}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func produce(ctx context.Context, c *client.Client) {
	for n := 1; ctx.Err() == nil; n++ {
		if _, err := c.Add(ctx, client.NewJob{Topic: "mail", Body: client.Text(fmt.Sprint("user", n)), Delay: 2 * time.Second}); err != nil {
			log.Print(err) // no node could be reached for 30 s
		}
		time.Sleep(time.Second)
	}
}

func send(_ context.Context, j client.Reserved) error {
	fmt.Printf("mail to %s, attempt %d\n", j.Bytes(), j.Attempts)
	return nil
}
