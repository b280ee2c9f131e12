package view

import (
	"cmp"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tarry/auth"
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// Admission returns who may become a member.
func (v *View) Admission() (a *jobpb.Admission, err error) {
	err = v.With(func(r pebble.Reader) (err error) {
		a, err = record.ReadAdmission(r)
		return err
	})
	return a, err
}

// Schedule returns a schedule by its name.
func (v *View) Schedule(name string) (s *jobpb.ScheduleInfo, found bool, err error) {
	err = v.With(func(r pebble.Reader) error { s, err = record.ReadSchedule(r, name); return err })
	return s, s != nil && err == nil, err
}

// Schedules returns up to n schedules in the order of their names, starting after the
// name given. The page ends early once it has more than job.MaxScheduleListBytes.
func (v *View) Schedules(after string, n int) (list []*jobpb.ScheduleInfo, err error) {
	if n <= 0 {
		return nil, nil
	}
	lower := record.AppendScheduleKey(nil, record.ScheduleState, after)
	if after != "" {
		lower = append(lower, 0)
	}
	size := 0
	err = v.With(func(r pebble.Reader) error {
		return v.Scan(r, lower, []byte{record.SpaceSchedule, record.ScheduleState + 1}, func(key, _ []byte) error {
			s, err := record.ReadSchedule(r, string(key[2:]))
			if err != nil {
				return err
			}
			list = append(list, s)
			if size += s.Schedule.SizeVT() + s.State.SizeVT(); len(list) == n || size > job.MaxScheduleListBytes {
				return record.ErrEnough
			}
			return nil
		})
	})
	return list, err
}

// Token returns a token of a client by its id; nil: there is none. The info does not count
// the tokens.
func (v *View) Token(id string) (t *jobpb.Token, info *jobpb.AuthInfo, err error) {
	err = v.With(func(r pebble.Reader) (err error) {
		if info, err = readAuthInfo(r); err != nil || id == "" {
			return err
		}
		return record.ReadKey(r, record.AppendNameKey(nil, record.SpaceToken, id), func(value []byte) error {
			t, err = record.DecodeToken(id, value)
			return err
		})
	})
	return t, info, err
}

// Tokens returns up to n tokens in the order of their ids, starting after the id given.
// The page ends early once it has more than job.MaxTokenListBytes. The info does not count
// the tokens.
func (v *View) Tokens(after string, n int) (list []*jobpb.Token, info *jobpb.AuthInfo, err error) {
	lower := append(record.AppendNameKey(nil, record.SpaceToken, after), 0) // also behind KeyAuth
	size := 0
	err = v.With(func(r pebble.Reader) (err error) {
		if info, err = readAuthInfo(r); err != nil || n <= 0 {
			return err
		}
		return v.Scan(r, lower, []byte{record.SpaceToken + 1}, func(key, value []byte) error {
			t, err := record.DecodeToken(string(key[1:]), value)
			if err != nil {
				return err
			}
			list = append(list, t)
			if size += len(value); len(list) == n || size > job.MaxTokenListBytes {
				return record.ErrEnough
			}
			return nil
		})
	})
	return list, info, err
}

// Auth returns the settings for all tokens, and counts these.
func (v *View) Auth() (info *jobpb.AuthInfo, err error) {
	err = v.With(func(r pebble.Reader) (err error) {
		if info, err = readAuthInfo(r); err != nil {
			return err
		}
		return v.Scan(r, append(record.KeyAuth[:1:1], 0), []byte{record.SpaceToken + 1}, func([]byte, []byte) error {
			info.Tokens++
			return nil
		})
	})
	return info, err
}

// readAuthInfo reads what there is beside the tokens.
func readAuthInfo(r pebble.Reader) (*jobpb.AuthInfo, error) {
	s := auth.NewState(0, false, nil, nil)
	err := record.ReadKey(r, record.KeyAuth, func(value []byte) (err error) { s, err = record.DecodeAuth(value, nil); return err })
	if err != nil {
		return nil, err
	}
	return &jobpb.AuthInfo{Revision: s.Revision, Bootstrapped: s.Bootstrapped, Settings: s.Settings}, nil
}

// Namespaces returns all namespaces and what they hold, in the order of their names.
func (v *View) Namespaces() (list []*jobpb.NamespaceUse, err error) {
	err = v.With(func(r pebble.Reader) error {
		all, err := record.ReadNamespaces(r)
		for _, n := range all {
			list = append(list, n.Describe())
		}
		return err
	})
	slices.SortFunc(list, func(a, b *jobpb.NamespaceUse) int { return cmp.Compare(a.Namespace.Name, b.Namespace.Name) })
	return list, err
}

// Namespace returns a namespace by its name; nil: there is none.
func (v *View) Namespace(name string) (use *jobpb.NamespaceUse, err error) {
	err = v.With(func(r pebble.Reader) error {
		n, err := record.ReadNamespace(r, name)
		if err == nil && n != nil {
			use = n.Describe()
		}
		return err
	})
	return use, err
}
