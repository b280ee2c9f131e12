package server

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"tarry/api"
)

// Two files in the data directory prove to its node who may make a first token: one that the
// node makes, for who can read the directory, and one that tarry auth reset makes, for who can
// write to it.

// newProof returns an unguessable text.
func newProof() string {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(secret[:])
}

// equalProofs compares in constant time. An empty file proves nothing.
func equalProofs(proof, given string) bool {
	return len(proof) >= 32 && subtle.ConstantTimeCompare([]byte(proof), []byte(given)) == 1
}

// MakeBootstrapSecret makes the file that proves that somebody can read the data directory,
// unless it is there.
func MakeBootstrapSecret(dir string) error {
	path := filepath.Join(dir, api.BootstrapFile)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := writeProof(path, []byte(newProof()+"\n")); err != nil {
		return fmt.Errorf("the secret for the first token: %w", err)
	}
	return nil
}

// ChecksBootstrap returns what reports whether a secret is that of the file.
func ChecksBootstrap(dir string) func(secret string) bool {
	return func(secret string) bool {
		text, err := os.ReadFile(filepath.Join(dir, api.BootstrapFile))
		return err == nil && equalProofs(strings.TrimSpace(string(text)), secret)
	}
}

// writeProof replaces a file that only the owner of its directory may read. Under its name it is
// whole, whenever the process or the machine ends.
func writeProof(path string, content []byte) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, giveToOwner(f, filepath.Dir(path)), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// maxProofBytes bounds a file with a proof.
const maxProofBytes = 4096

// ReadProof reads a file that the node has written. It follows no link: root may be the one who
// reads, and the node's user the one who owns the directory.
func ReadProof(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxProofBytes {
		return nil, fmt.Errorf("%s is not a file that a node has written", path)
	}
	return io.ReadAll(io.LimitReader(f, maxProofBytes))
}

// giveToOwner gives a file of root to the owner of its directory: the user of the node.
func giveToOwner(f *os.File, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return f.Chown(int(owner.Uid), int(owner.Gid))
}

// resetProof is what the file of tarry auth reset has.
type resetProof struct {
	Nonce string    `json:"nonce"`
	Made  time.Time `json:"made"`
	Used  bool      `json:"used"`
}

// ResetFile is the file of tarry auth reset in a data directory.
type ResetFile struct {
	Dir string

	mu sync.Mutex // of changes by this process
}

func (f *ResetFile) path() string { return filepath.Join(f.Dir, api.ResetFile) }

// Make makes the file with another nonce.
func (f *ResetFile) Make(now time.Time) error {
	return f.write(resetProof{Nonce: newProof(), Made: now.UTC()})
}

func (f *ResetFile) write(p resetProof) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return writeProof(f.path(), append(text, '\n'))
}

func (f *ResetFile) Read() (p resetProof, err error) {
	text, err := ReadProof(f.path())
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("%s: %w", f.path(), err)
	}
	return p, nil
}

// Holds implements api.AuthReset.
func (f *ResetFile) Holds(nonce string) bool {
	p, err := f.Read()
	return err == nil && equalProofs(p.Nonce, nonce) && p.Fresh(time.Now())
}

// Fresh reports whether the nonce may be used at an instant. One of the future was made while
// the clock was wrong.
func (p resetProof) Fresh(now time.Time) bool {
	age := now.Sub(p.Made)
	return age >= -time.Minute && age < api.ResetTime
}

// Use implements api.AuthReset.
func (f *ResetFile) Use(nonce string) (bool, error) { return f.mark(nonce, true) }

// Undo implements api.AuthReset.
func (f *ResetFile) Undo(nonce string) error {
	_, err := f.mark(nonce, false)
	return err
}

// mark changes whether a nonce is used, and reports whether that changed it.
func (f *ResetFile) mark(nonce string, used bool) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.Read()
	if err != nil {
		return false, err
	}
	if !equalProofs(p.Nonce, nonce) || p.Used == used { // there may be another one since
		return false, nil
	}
	p.Used = used
	if err := f.write(p); err != nil {
		return false, fmt.Errorf("mark the nonce of tarry auth reset: %w", err)
	}
	return true, nil
}
