package stranger

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// BeanstalkdPort returns the attacks on the port for beanstalkd clients.
func BeanstalkdPort() []Attack {
	return []Attack{
		{"beanstalkd-garbage", beanstalkdGarbage},
		{"beanstalkd-http", beanstalkdHTTP},
		{"beanstalkd-announced", beanstalkdAnnounced},
		{"beanstalkd-idle", beanstalkdIdle},
	}
}

func beanstalkdGarbage(ctx context.Context, s *Stranger) error {
	for _, words := range []string{
		string(s.noise(10)), string(s.noise(100_000)), strings.Repeat("x", 1<<20), "put\r\n", "put -1 -1 -1 -1\r\n",
		"put 0 0 60 99999999999999999999\r\n", "put 0 0 60 4294967296\r\n", "put 0 0 60 3\r\nabcdef\r\n", "reserve-with-timeout -5\r\n",
		"use " + strings.Repeat("t", 300) + "\r\n", "watch \x00\r\n", strings.Repeat("stats\r\n", 200), "delete 99999999999999999999\r\n",
	} {
		s.tell(ctx, s.Target.Beanstalk, []byte(words), 50*time.Millisecond)
	}
	return nil
}

// beanstalkdHTTP is an HTTP request with commands in its body, as a page can make a browser
// send.
func beanstalkdHTTP(ctx context.Context, s *Stranger) error {
	body := []byte("use stranger\r\nput 0 86400 60 1\r\nx\r\n")
	heard := s.tell(ctx, s.Target.Beanstalk, s.request("POST", "/", s.Target.Beanstalk, body), time.Second)
	if bytes.Contains(heard, []byte("INSERTED")) {
		return believed("commands in the body of an HTTP request were done")
	}
	return nil
}

// announcers times the largest body is the memory that a node has for bodies. Smaller ones
// would use the rest.
const announcers = 4100

func beanstalkdAnnounced(ctx context.Context, s *Stranger) error {
	var puts [][]byte
	for size, count := 65535, announcers; size > 0; size, count = size/16, 20 {
		put := fmt.Sprintf("use stranger\r\nput 0 86400 60 %d\r\n", size)
		puts = append(puts, slices.Repeat([][]byte{[]byte(put)}, count)...)
	}
	s.crowd(ctx, s.Target.Beanstalk, puts, nil, crowdTime)
	return nil
}

func beanstalkdIdle(ctx context.Context, s *Stranger) error {
	s.crowd(ctx, s.Target.Beanstalk, make([][]byte, idlers), nil, crowdTime)
	return nil
}
