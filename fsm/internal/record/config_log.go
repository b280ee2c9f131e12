package record

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/configlog"
	"tarry/job/jobpb"
)

// ConfigPrefixes are those of the keys of the config, in order: in a cluster with several shards the
// config group decides it, and the data groups follow. The rest of a state is of its group alone.
var ConfigPrefixes = [...]string{string([]byte{SpaceSettings}), string([]byte{SpaceToken}), string([]byte{SpaceNamespace, NamespaceDef})}

// ClusterSpaces are the keyspaces about the nodes of a cluster.
var ClusterSpaces = [...]byte{SpaceAdmission, SpaceForgotten, SpaceRemoved}

// ConfigLog is how far the config group has come. It keeps the changes after Kept.
type ConfigLog struct {
	configlog.Position
	Kept uint64
}

// Append encodes the record.
func (l *ConfigLog) Append(b []byte) []byte { return appendNumbers(b, l.Epoch, l.Number, l.Kept) }

func decodeConfigLog(b []byte) (l ConfigLog, err error) {
	rest, err := numbers(b, "config log", &l.Epoch, &l.Number, &l.Kept)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("config log record has %d bytes too many", len(rest))
	}
	return l, err
}

// AppendConfigGroup encodes how far a data group has come.
func AppendConfigGroup(b []byte, g *configlog.Group) []byte {
	b = appendNumbers(b, g.Epoch, g.Number, g.Heard.Term, uint64(g.Heard.AskedMS), g.Loading.At.Epoch, g.Loading.At.Number)
	return append(b, g.Loading.Next...)
}

func decodeConfigGroup(b []byte) (g configlog.Group, err error) {
	var asked uint64
	rest, err := numbers(b, "config group", &g.Epoch, &g.Number, &g.Heard.Term, &asked, &g.Loading.At.Epoch, &g.Loading.At.Number)
	g.Heard.AskedMS, g.Loading.Next = int64(asked), string(rest)
	return g, err
}

func appendNumbers(b []byte, numbers ...uint64) []byte {
	b = append(b, FormatVersion)
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func numbers(b []byte, what string, to ...*uint64) (rest []byte, err error) {
	if err := checkVersion(what, b, FormatVersion); err != nil {
		return nil, err
	}
	if len(b) < 1+8*len(to) {
		return nil, fmt.Errorf("%s record: %w", what, ErrShort)
	}
	for i, n := range to {
		*n = binary.BigEndian.Uint64(b[1+8*i:])
	}
	return b[1+8*len(to):], nil
}

// EachConfigChange calls use with the changes after a number, in order, until it returns false.
func EachConfigChange(r pebble.Reader, after uint64, use func(number uint64, encoded []byte) (bool, error)) error {
	err := Scan(r, AppendSeqKey(nil, SpaceConfigLog, after+1), []byte{SpaceConfigLog + 1}, func(key, value []byte) error {
		number, err := SeqOfKey(key)
		if err != nil {
			return err
		}
		more, err := use(number, value)
		if err == nil && !more {
			err = ErrEnough
		}
		return err
	})
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return err
}

// EachConfigRecord calls use with the records of the config from a key on, in order, until it returns
// false.
func EachConfigRecord(r pebble.Reader, from string, use func(*jobpb.ConfigRecord) bool) error {
	for _, prefix := range ConfigPrefixes {
		end := []byte(prefix)
		end[len(end)-1]++
		if string(end) <= from {
			continue
		}
		err := Scan(r, []byte(max(prefix, from)), end, func(key, value []byte) error {
			if !use(&jobpb.ConfigRecord{Key: append([]byte(nil), key...), Value: append([]byte(nil), value...)}) {
				return ErrEnough
			}
			return nil
		})
		if errors.Is(err, ErrEnough) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
