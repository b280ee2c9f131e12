package server

import (
	"fmt"
	"log/slog"
	"math"
	"syscall"

	"tarry/api/httpx"
	"tarry/cluster"
	"tarry/push"
)

// openFiles divides the files that the process may have open. A store that cannot
// open one ends the node, so clients get what is left and no more, and no port can
// take the share of another.
type openFiles struct {
	node    cluster.OpenFiles
	Clients int // connections of all client ports together
}

// What is kept for other things than connections and tables.
const (
	processFiles = 48 // standard streams, listeners, the poller, name lookups, a collector of traces, refusals under way
	logFiles     = 48 // the Raft log: 2 GiB in segments of 64 MiB, and its records
	storeFiles   = 32 // the state's own log, manifests, what compactions write
	inspectFiles = 72 // a state that is received, before it takes the place of the old one
	gossipFiles  = 72 // its listeners, and the connections it accepts and dials

	// minClients is what a node must have left for clients. Each port can count on
	// one part in portShare of what is left, whatever the others take.
	minClients = 32
	portShare  = 8
)

// DivideOpenFiles refuses a limit that is too low for a node. Above 1024, the usual
// limit of old systems, the shares of the node's own parts grow with the limit.
func DivideOpenFiles(limit int, pushes bool) (openFiles, error) {
	more := max(limit-1024, 0)
	node := cluster.OpenFiles{Tables: min(80+more/8, 1000), Peers: min(24+more/16, 1024)}
	reserved := httpx.OperatorConnections + processFiles + logFiles + storeFiles + inspectFiles + gossipFiles + node.Tables
	reserved += 3*node.Peers + min(node.Peers, 256) // accepted for Raft and for calls, dialed, not known yet
	if pushes {
		reserved += push.MaxPosts
	}
	if left := limit - reserved; left >= minClients {
		return openFiles{node: node, Clients: left}, nil
	}
	return openFiles{}, fmt.Errorf("this process may have %d files open and needs %d at least: raise the limit, "+
		"with ulimit -n, LimitNOFILE= of systemd or --ulimit nofile= of docker", limit, reserved+minClients)
}

// openFiles divides what this process may have open, and lowers MaxConnections to
// what is left for a port.
func (c *Config) openFiles(log *slog.Logger) (openFiles, error) {
	limit, err := OpenFilesLimit()
	if err != nil {
		return openFiles{}, err
	}
	files, err := DivideOpenFiles(limit, !c.PushAllow.Empty())
	if err != nil {
		return openFiles{}, err
	}
	most := files.Clients
	if len(c.tubeListeners()) > 0 {
		most -= files.Clients / portShare
	}
	if c.MaxConnections > most {
		log.Info("the limit on open files lowers --max-connections; raise it, with ulimit -n for instance, for more",
			"open_files", limit, "max_connections", c.MaxConnections, "each_port", most, "all_ports", files.Clients)
		c.MaxConnections = most
	}
	return files, nil
}

// OpenFilesLimit is what this process may have open. Go has raised the soft limit
// to the hard one when the process started.
func OpenFilesLimit() (int, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("read the limit on open files: %w", err)
	}
	return int(min(l.Cur, math.MaxInt32)), nil
}
