package server

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"tarry/api/httpx"
)

// serveProfiles serves Go's profiles on an address of their own, so that they
// are never within reach of the clients' port. An empty address serves nothing.
// They are for requests to the hosts alone, as the clients' port is.
func serveProfiles(addr string, hosts []string) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for profiles: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: httpx.ForHosts(hosts, mux), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // returns when stop closes it
	}()
	return func() {
		_ = server.Close() // of the listener, which nobody needs any more
		<-done
	}, nil
}
