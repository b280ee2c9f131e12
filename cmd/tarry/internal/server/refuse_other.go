//go:build !unix

package server

import "os"

// notifyRefuse does nothing where there is no such signal.
func notifyRefuse(chan<- os.Signal) {}
