package fsm

import (
	"errors"
	"fmt"
)

// ErrHalfInstalled is wrapped by the error of an Install that failed when there
// was no way back. What the machine serves then is in doubt: the process must
// end. The next Open finds the old state or the new one, each whole.
var ErrHalfInstalled = errors.New("a snapshot was installed only half: the process must end")

// Install replaces the whole state by what r received, a Receiver of this
// machine. That must be the state at want.Index and want.Term. Like Apply it belongs to the one goroutine that
// applies. All views end. It blocks for some syncs and for opening the store.
//
// On an error that wraps ErrHalfInstalled the process must end. On any other the
// old state goes on serving, untouched, and r is aborted.
func (m *Machine) Install(r *Receiver, want Applied) error {
	if err := m.checkReceived(r, want); err != nil {
		return errors.Join(fmt.Errorf("install a snapshot: %w", err), r.Abort())
	}
	old := m.store.path
	fsys := m.options.FS
	path := fsys.PathJoin(m.dir, r.name)
	m.options.Point("before-swap")
	if err := fsys.Rename(r.unfinished(), path); err != nil {
		return errors.Join(fmt.Errorf("install a snapshot: %w", err), r.Abort())
	}
	name := r.name
	r.name = "" // it is ours now
	if err := syncDir(fsys, m.dir); err != nil {
		return errors.Join(fmt.Errorf("install a snapshot: %w", err), fsys.RemoveAll(path))
	}
	err := writeCurrent(fsys, m.dir, name)
	m.options.Point("after-swap")
	if err == nil {
		err = m.reopen(path)
	}
	if err == nil {
		m.settingsVersion.Add(1)
		err = m.retellWatches()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHalfInstalled, err)
	}
	if err := fsys.RemoveAll(old); err != nil {
		// The next Open removes the rest; the new state is in force.
		m.options.infof("the replaced state in %s could not be removed: %v", old, err)
	}
	return nil
}

// checkReceived proves that r holds a whole store of a known format that has
// come to exactly the point that Raft expects. The archive's checksums are no
// proof: the sender reads its files without looking into them, so damage on its
// disk would spread, and the live store ends the process when it meets damage. So
// every record is read once here.
func (m *Machine) checkReceived(r *Receiver, want Applied) error {
	if err := r.Finish(); err != nil {
		return err
	}
	if m.store == nil {
		return errClosed
	}
	got, err := inspect(r.unfinished(), m.options, readAll)
	if err != nil {
		return err
	}
	for _, has := range []Applied{{Index: r.manifest.index, Term: r.manifest.term}, got} {
		if has.Index != want.Index || has.Term != want.Term {
			return fmt.Errorf("it holds the state at entry %d of term %d, expected was entry %d of term %d", has.Index, has.Term, want.Index, want.Term)
		}
	}
	return nil
}

func (o Options) infof(format string, args ...any) {
	if o.Logger != nil {
		o.Logger.Infof(format, args...)
	}
}
