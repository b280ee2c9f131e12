//go:build unix

package server

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyRefuse asks for the signal that makes beanstalkd refuse puts.
func notifyRefuse(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR1) }
