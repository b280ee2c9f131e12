package cluster

import (
	"bytes"
	"io"
	"log/slog"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestNormalStartsAndStopsCauseNoWarnings(t *testing.T) {
	const (
		election = "heartbeat timeout reached, starting election"
		previous = "failed to get previous log"
		older    = "appendEntries rejected, sending older logs"
	)
	leader := func(id raft.ServerID) []any {
		return []any{"last-leader-addr", raft.ServerAddress("n1:7301"), "last-leader-id", id}
	}
	last := func(index uint64) []any { return []any{"previous-index", uint64(9), "last-index", index} }
	next := func(index uint64) []any { return []any{"peer", "n1", "next", index} }
	for name, c := range map[string]struct {
		msg  string
		args []any
		want string
	}{
		"a node that starts":           {election, leader(""), "DEBUG"},
		"a leader that was lost":       {election, leader("n1"), "WARN"},
		"a line that says nothing":     {election, nil, "WARN"},
		"a node without configuration": {"no known peers, aborting election", nil, "DEBUG"},
		"a leader that handed over":    {"peer has newer term, stopping replication", []any{"peer", "n2"}, "DEBUG"},
		"a state ahead of its log":     {"skipping application of old log", []any{"index", 5}, "DEBUG"},
		"a node that came back":        {"rejecting pre-vote request since we have a leader", []any{"from", "n2:7301"}, "DEBUG"},
		"another line":                 {"Election timeout reached, restarting election", leader(""), "WARN"},
		"a node without a log":         {previous, last(0), "DEBUG"},
		"a log that lacks its end":     {previous, last(7), "WARN"},
		"a peer without a log":         {older, next(1), "DEBUG"},
		"a peer that lacks the end":    {older, next(7), "WARN"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			newRaftLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))).Warn(c.msg, c.args...)
			require.Contains(t, out.String(), "level="+c.want)
		})
	}
}

func TestLinesOfRaftNameNodes(t *testing.T) {
	var out bytes.Buffer
	peer := raft.Server{Suffrage: raft.Voter, ID: "n2.a9319347d8c2bdd5", Address: "n2:7301"}
	log := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)))
	log.Error("failed to appendEntries to", "peer", peer, "error", io.ErrUnexpectedEOF)
	log.Error("failed to make requestVote RPC", "target", peer, "voter", peer.ID)
	require.Contains(t, out.String(), `level=WARN msg="failed to appendEntries to" part=raft peer=n2 error=`)
	require.Contains(t, out.String(), `level=WARN msg="failed to make requestVote RPC" part=raft target=n2 voter=n2`)
}
