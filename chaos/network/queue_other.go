//go:build !linux

package network

import "time"

// queue is never used, because Available fails first.
type queue struct{}

func openQueue(string, uint16) (*queue, error)      { return nil, Available() }
func (*queue) deadline(time.Time) error             { return Available() }
func (*queue) receive() ([]packet, error)           { return nil, Available() }
func (*queue) verdict(id uint32, accept bool) error { return Available() }
func (*queue) close() error                         { return nil }
