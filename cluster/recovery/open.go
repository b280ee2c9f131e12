package recovery

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"sync"

	"github.com/hashicorp/raft"

	"tarry/cluster/datadir"
	"tarry/cluster/logstore"
	"tarry/fsm"
)

// stores are the log and the state of a stopped node's shard.
type stores struct {
	log     *logstore.Stores
	machine *fsm.Machine

	mu    sync.Mutex
	fatal error // the first failure in the background
}

// openStores opens the stores of a shard; with claim it creates them if there are none. With cut
// it removes the end of a damaged log (logstore.Options.CutDamage).
func openStores(dir *datadir.Dir, claim, cut bool) (s *stores, err error) {
	shard := dir.Shard(0)
	s = new(stores)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if claim {
		if err := datadir.ClaimShard(shard, dir.ServerID()); err != nil {
			return s, err
		}
	}
	if s.log, err = logstore.Open(filepath.Join(shard, "raft"), logstore.Options{Kind: logstore.Kind(dir.LogStore()), Fatal: s.fail, CutDamage: cut}); err != nil {
		return s, fmt.Errorf("open the Raft log: %w", err)
	}
	if s.machine, err = fsm.Open(filepath.Join(shard, "fsm"), fsm.Options{OnFatal: s.fail}); err != nil {
		return s, fmt.Errorf("open the state: %w", err)
	}
	return s, nil
}

// fail keeps a failure in the background, which close returns.
func (s *stores) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fatal == nil {
		s.fatal = err
	}
}

func (s *stores) close() error {
	var errs []error
	if s.machine != nil {
		errs = append(errs, s.machine.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(append(errs, s.fatal)...)
}

// newClusterID returns a random id, in the form that a leader gives.
func newClusterID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// onlyVoter is the configuration of a cluster with one node. A wrong address is corrected
// as soon as the node leads.
func onlyVoter(serverID, address string) []byte {
	return raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: raft.ServerID(serverID), Address: raft.ServerAddress(address),
	}}})
}

// setTerm makes the term durable before any entry of it.
func setTerm(votes raft.StableStore, term uint64) error {
	if err := votes.SetUint64([]byte("CurrentTerm"), term); err != nil {
		return fmt.Errorf("write Raft's term: %w", err)
	}
	return nil
}
