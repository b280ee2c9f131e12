//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyRefuse asks for the signal by which beanstalkd is told to refuse puts.
func notifyRefuse(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR1) }
