package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

// front is a proxy before each node of a cluster: it counts requests, refuses some or
// drops their replies. Clients learn the addresses of the proxies, never those of nodes.
type front struct {
	cluster *cluster
	doors   []*door
	scheme  string

	mu     sync.Mutex
	faults []*frontFault
	seen   []frontRequest // since the last heal
}

// frontFault is what happens to the next requests of a method and path.
type frontFault struct {
	Method, Path  string
	At            string // the address of the one door that does so; empty: all do
	After, Count  int    // the first After are let through
	drop, hold    bool
	Status        int
	Code, Outcome string
	Location      string
	RetryAfter    int `json:"retry_after"`
	Body          any // of the reply, instead of an error
}

type frontRequest struct{ method, path, door string }

// door is the proxy of one node. While the node is dead it refuses connections.
type door struct {
	front *front
	node  *localcluster.Node
	addr  string
	proxy *httputil.ReverseProxy

	tls    *tls.Config  // nil: plain HTTP
	server *http.Server // nil while the door is closed
	served sync.WaitGroup
}

// newFront opens a door for each node, with TLS unless config is nil.
func newFront(t *testing.T, c *cluster, config *tls.Config) *front {
	f := &front{cluster: c, scheme: "http://"}
	if config != nil {
		f.scheme = "https://"
	}
	for _, n := range c.Nodes() {
		f.doors = append(f.doors, f.newDoor(n, config))
	}
	for _, d := range f.doors {
		d.open(t)
	}
	t.Cleanup(func() {
		for _, d := range f.doors {
			d.close()
		}
	})
	return f
}

func (f *front) newDoor(n *localcluster.Node, config *tls.Config) *door {
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: n.HTTP})
	// A kept connection may lead to a process that is no more.
	p.Transport = &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	p.FlushInterval = -1
	p.ErrorLog = log.New(io.Discard, "", 0)
	p.ModifyResponse = f.hideNodes
	p.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	return &door{front: f, node: n, addr: "127.0.0.1:0", proxy: p, tls: config}
}

func (d *door) open(t *testing.T) {
	listener, err := net.Listen("tcp", d.addr)
	require.NoError(t, err)
	d.addr = listener.Addr().String() // the same one again, when the node is back
	d.server = &http.Server{Handler: d, ErrorLog: log.New(io.Discard, "", 0)}
	if d.tls != nil {
		listener = tls.NewListener(listener, d.tls)
	}
	d.served.Go(func() { _ = d.server.Serve(listener) })
}

func (d *door) close() {
	if d.server != nil {
		_ = d.server.Close()
		d.served.Wait()
		d.server = nil
	}
}

// ServeHTTP lets a request through unless a fault is meant for it.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := d.front.arrived(d, r)
	readBody(r)
	switch {
	case fault == nil:
		d.proxy.ServeHTTP(w, r)
	case fault.drop:
		// The node finishes the request, although nobody gets the reply.
		d.proxy.ServeHTTP(&lostReply{http.Header{}}, r.WithContext(context.WithoutCancel(r.Context())))
		panic(http.ErrAbortHandler)
	case fault.hold:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	default:
		if fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
		}
		if fault.Location != "" {
			w.Header().Set("Location", fault.Location)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(fault.Status)
		if fault.Body != nil {
			_ = json.NewEncoder(w).Encode(fault.Body)
			return
		}
		_ = json.NewEncoder(w).Encode(object{"success": false, "code": fault.Code, "error": "refused by the case", "outcome": fault.Outcome})
	}
}

// readBody reads the whole body of a request, before a node gets any of it. Otherwise a node
// may reply before the proxy has read the body's end. Go's server then closes the body, and
// its client the connection to the node for it, with the stream that has just begun. Only
// after the end of the body the server notices that the client is gone.
func readBody(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // nobody waits for the reply
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
}

// lostReply is a reply that goes nowhere.
type lostReply struct{ header http.Header }

func (l *lostReply) Header() http.Header         { return l.header }
func (l *lostReply) Write(b []byte) (int, error) { return len(b), nil }
func (l *lostReply) WriteHeader(int)             {}

// arrived counts a request and finds the fault that is meant for it.
func (f *front) arrived(d *door, r *http.Request) *frontFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := r.URL.EscapedPath()
	f.seen = append(f.seen, frontRequest{r.Method, p, d.addr})
	for _, fault := range f.faults {
		if fault.Count > 0 && fault.Method == r.Method && covers(fault.Path, p) && (fault.At == "" || fault.At == d.addr) {
			if fault.After > 0 {
				fault.After--
				return nil
			}
			fault.Count--
			return fault
		}
	}
	return nil
}

func covers(pattern, p string) bool {
	ok, err := path.Match(pattern, p)
	return ok && err == nil
}

// hideNodes puts the proxies' addresses in the place of the nodes'.
func (f *front) hideNodes(r *http.Response) error {
	if leader := r.Header.Get("Tarry-Leader"); leader != "" {
		r.Header.Set("Tarry-Leader", f.doorOf(leader))
	}
	if r.Request.URL.Path != "/v1/cluster/members" {
		return nil
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	text := string(data)
	for _, d := range f.doors {
		text = strings.ReplaceAll(text, strconv.Quote(d.node.HTTP), strconv.Quote(d.addr))
	}
	r.Body = io.NopCloser(strings.NewReader(text))
	r.ContentLength = int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}

func (f *front) doorOf(nodeAddr string) string {
	for _, d := range f.doors {
		if d.node.HTTP == nodeAddr {
			return d.addr
		}
	}
	return nodeAddr
}

func (f *front) door(n *localcluster.Node) *door {
	for _, d := range f.doors {
		if d.node == n {
			return d
		}
	}
	panic("a node without a door")
}

// doorAt is the door with an address.
func (f *front) doorAt(addr string) (*door, error) {
	for _, d := range f.doors {
		if d.addr == addr {
			return d, nil
		}
	}
	return nil, fmt.Errorf("no proxy has the address %s", addr)
}

func (f *front) addrs() []any {
	var list []any
	for _, d := range f.doors {
		list = append(list, f.scheme+d.addr)
	}
	return list
}

// kill is kill -9: what was connected is cut off, and nobody listens.
func (d *door) kill() error {
	err := d.node.Kill()
	d.close()
	return err
}

// restore makes the cluster whole and the proxies healthy.
func (f *front) restore(t *testing.T) {
	f.heal()
	for _, d := range f.doors {
		if !d.node.Running() {
			require.NoError(t, d.node.Start())
			f.cluster.waitReady(d.node)
		}
		if d.server == nil {
			d.open(t)
		}
	}
	f.cluster.waitReady(f.cluster.Nodes()...)
	for _, d := range f.doors {
		f.cluster.until(d.namesLeader)
	}
}

// namesLeader returns an error unless the node names the leader to its clients. A node that
// has just started is ready before it has heard the leader's address.
func (d *door) namesLeader() error {
	resp, err := plainClient.Get("http://" + d.node.HTTP + "/v1/stats")
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.Header.Get("Tarry-Leader") == "" {
		return fmt.Errorf("%s does not name the leader", d.node.ID)
	}
	return nil
}

func (f *front) addFault(fault *frontFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fault)
}

func (f *front) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults, f.seen = nil, nil
}

// requests counts those of a method and path since the last heal, at the door with an address or at
// all.
func (f *front) requests(method, pattern, at string) object {
	f.mu.Lock()
	defer f.mu.Unlock()
	count, last := 0, ""
	for _, r := range f.seen {
		if r.method == method && covers(pattern, r.path) && (at == "" || at == r.door) {
			count, last = count+1, r.door
		}
	}
	return object{"count": float64(count), "last": last}
}

// direct makes a request past the proxies.
func direct(ctx context.Context, method, addr, path string, body any) (object, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(data)
	}
	q, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, content)
	if err != nil {
		return nil, err
	}
	resp, err := plainClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	reply := object{}
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	reply["status"] = float64(resp.StatusCode)
	return reply, nil
}
