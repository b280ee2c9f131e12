package ackguard

import (
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newGuard(t *testing.T) *Guard {
	return New(Config{ServerID: "n1.a", Logger: slog.New(slog.DiscardHandler), OnRollback: func(err error) { t.Error(err) }})
}

// noState is a state machine that keeps nothing.
type noState struct{}

func (noState) Apply(*raft.Log) any                 { return nil }
func (noState) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("not in these tests") }
func (noState) Restore(io.ReadCloser) error         { return errors.New("not in these tests") }
