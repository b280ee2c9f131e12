package oplog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/job"
)

// since has the cluster version that added a field or a value of an enum, by its full name
// in the schema ("tarry.v1.Touch.ttr_ms"), or all fields of a message by that of the message;
// job.FirstVersion if it is not listed. Operations, the fields of Op, have it in operation.go.
var since = map[protoreflect.FullName]uint32{
	"tarry.v1.IF_EXISTS_REPLACE_ENDED": 2,

	"tarry.v1.ImportJob":     2,
	"tarry.v1.FollowLog":     2,
	"tarry.v1.FollowedEntry": 2,

	"tarry.v1.Purge.drop_empty": 2,

	"tarry.v1.ConfigLog":    2,
	"tarry.v1.ConfigChange": 2,
	"tarry.v1.ConfigRecord": 2,
	"tarry.v1.ConfigPart":   2,

	"tarry.v1.SetCluster.sharding": 2,
	"tarry.v1.Sharding":            2,
	"tarry.v1.Voter":               2,

	"tarry.v1.PutStateChunk":   2,
	"tarry.v1.DropStateChunks": 2,
	"tarry.v1.ReplaceState":    2,
}

// opSchema is the schema of an operation.
var opSchema = schemaOf(opDescriptor)

// schema is a message type as far as it decides what may be in the log. Decoders ignore
// unknown fields: a node of an older release would apply an operation without its newer
// field, and its state would differ from then on. So every operation is checked against
// the schema before it enters the log and before it is applied. The check reads the encoded
// form, which is faster than a search in the decoded one.
type schema struct {
	name   string
	fields []schemaField // by number
}

type schemaField struct {
	name    string
	since   uint32            // 0: unknown
	message *schema           // of a message
	values  map[uint64]uint32 // of an enum: since when each is known
}

// schemaOf returns the schema of a descriptor. No message contains its own type.
func schemaOf(d protoreflect.MessageDescriptor) *schema {
	s := &schema{name: string(d.Name())}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		made := schemaField{name: string(f.Name()), since: sinceOf(f.FullName())}
		switch f.Kind() {
		case protoreflect.MessageKind:
			made.message = schemaOf(f.Message())
		case protoreflect.EnumKind:
			made.values = make(map[uint64]uint32)
			for j := range f.Enum().Values().Len() {
				v := f.Enum().Values().Get(j)
				made.values[uint64(v.Number())] = sinceOf(v.FullName())
			}
		}
		s.set(int(f.Number()), made)
	}
	return s
}

func (s *schema) set(number int, f schemaField) {
	for len(s.fields) <= number {
		s.fields = append(s.fields, schemaField{})
	}
	s.fields[number] = f
}

func sinceOf(name protoreflect.FullName) uint32 {
	v := max(since[name], since[name.Parent()])
	if name.Parent() == opName {
		v = operations[name.Name()].since
	}
	return max(v, job.FirstVersion)
}

// NewerError is the error of an operation that has something newer than the cluster's
// version.
type NewerError struct {
	What    string // a field or value
	Since   uint32 // the version that has it; 0: this release does not know it
	Version uint32 // the cluster's
}

func (e *NewerError) Error() string {
	if e.Since == 0 {
		return fmt.Sprintf("%s is unknown here: it comes from a newer release; upgrade this node", e.What)
	}
	return fmt.Sprintf("%s needs cluster version %d, and the cluster has version %d until all of its nodes are upgraded", e.What, e.Since, e.Version)
}

var errCut = errors.New("it is cut short")

// check checks that an encoded message has only fields and values of a cluster version. The
// only other fault that it detects is a message that is cut short.
func (s *schema) check(b []byte, version uint32) error {
	for len(b) > 0 {
		tag, n := uvarint(b)
		if n <= 0 {
			return errCut
		}
		b = b[n:]
		number := tag >> 3
		if number >= uint64(len(s.fields)) || s.fields[number].since == 0 {
			return &NewerError{What: fmt.Sprintf("field %d of %s", number, s.name), Version: version}
		}
		f := &s.fields[number]
		if f.since > version {
			return s.newer(f, f.since, version)
		}
		switch tag & 7 {
		case 0:
			v, n := uvarint(b)
			if n <= 0 {
				return errCut
			}
			b = b[n:]
			if f.values != nil {
				if err := s.checkValue(f, v, version); err != nil {
					return err
				}
			}
		case 1:
			if len(b) < 8 {
				return errCut
			}
			b = b[8:]
		case 2:
			size, n := uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return errCut
			}
			inner := b[n : n+int(size)]
			b = b[n+int(size):]
			switch {
			case f.message != nil:
				if err := f.message.check(inner, version); err != nil {
					return err
				}
			case f.values != nil:
				if err := s.checkValues(f, inner, version); err != nil {
					return err
				}
			}
		case 5:
			if len(b) < 4 {
				return errCut
			}
			b = b[4:]
		default:
			return fmt.Errorf("field %d of %s has an unknown wire type", number, s.name)
		}
	}
	return nil
}

// checkValues checks a packed list of values of an enum.
func (s *schema) checkValues(f *schemaField, b []byte, version uint32) error {
	for len(b) > 0 {
		v, n := uvarint(b)
		if n <= 0 {
			return errCut
		}
		if err := s.checkValue(f, v, version); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (s *schema) checkValue(f *schemaField, v uint64, version uint32) error {
	since, known := f.values[v]
	switch {
	case !known:
		return &NewerError{What: fmt.Sprintf("the value %d of %s.%s", int32(v), s.name, f.name), Version: version}
	case since > version:
		return s.newer(f, since, version)
	}
	return nil
}

func (s *schema) newer(f *schemaField, since, version uint32) error {
	return &NewerError{What: s.name + "." + f.name, Since: since, Version: version}
}

// uvarint is binary.Uvarint, faster for values of one byte.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}
