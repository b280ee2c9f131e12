package fsm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// Scripts write messages as fields by their names, without _ms; durations as 30s; instants
// as @30s, counted from the beginning of the script, or as +30s from now.

// opNames are the operations that have other names in scripts than in the schema.
var opNames = map[string]string{
	"settings": "set_topic", "pause": "pause_topic", "move": "move_jobs",
	"schedule": "put_schedule", "unschedule": "delete_schedule", "fire": "fire_schedule",
}

// newOp returns an operation of a kind, and the message in it.
func newOp(t testing.TB, name string) (*jobpb.Op, protoreflect.Message) {
	if other := opNames[name]; other != "" {
		name = other
	}
	op := new(jobpb.Op)
	m := op.ProtoReflect()
	kind := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	require.NotNil(t, kind, "there is no command %s", name)
	return op, m.Mutable(kind).Message()
}

// findField returns the field of that name at the least depth of a message.
func findField(m protoreflect.Message, key string) (protoreflect.Message, protoreflect.FieldDescriptor) {
	for level := [][]protoreflect.FieldDescriptor{nil}; len(level) > 0; {
		var below [][]protoreflect.FieldDescriptor
		for _, path := range level {
			d := m.Descriptor()
			if len(path) > 0 {
				d = path[len(path)-1].Message()
			}
			for _, name := range []string{key, key + "_ms", key + "s"} {
				if fd := d.Fields().ByName(protoreflect.Name(name)); fd != nil {
					for _, in := range path {
						m = m.Mutable(in).Message()
					}
					return m, fd
				}
			}
			for i := range d.Fields().Len() {
				if fd := d.Fields().Get(i); fd.Message() != nil && !fd.IsList() && len(path) < 4 {
					below = append(below, append(path[:len(path):len(path)], fd))
				}
			}
		}
		level = below
	}
	return nil, nil
}

// setAll sets the fields that the arguments of a line name.
func (s *script) setAll(m protoreflect.Message, c command) {
	for _, a := range c.args {
		in, fd := findField(m, a.Key)
		require.NotNil(s.t, fd, "%s: %s takes no %s", s.pos, c.name, a.Key)
		switch {
		case fd.IsList():
			for _, text := range a.Vals {
				text, times := repeated(text)
				for range times {
					in.Mutable(fd).List().Append(s.value(fd, text))
				}
			}
		case fd.Message() != nil:
			require.Empty(s.t, a.Vals, s.pos)
			in.Mutable(fd)
		default:
			in.Set(fd, s.value(fd, strings.Join(a.Vals, ", ")))
		}
	}
}

func (s *script) value(fd protoreflect.FieldDescriptor, text string) protoreflect.Value {
	if x, times := repeated(text); times > 1 {
		text = strings.Repeat(x, times)
	}
	n, err := int64(0), error(nil)
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(text))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(text != "false")
	case protoreflect.EnumKind:
		for i := range fd.Enum().Values().Len() {
			if v := fd.Enum().Values().Get(i); valueName(v) == text {
				return protoreflect.ValueOfEnum(v.Number())
			}
		}
		require.Fail(s.t, "no such value", "%s: %s=%s", s.pos, fd.Name(), text)
	case protoreflect.Int64Kind:
		n, err = s.millis(text)
		require.NoError(s.t, err, s.pos)
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Int32Kind:
		n, err = strconv.ParseInt(text, 10, 32)
		require.NoError(s.t, err, s.pos)
		return protoreflect.ValueOfInt32(int32(n))
	}
	u, err := parseUint(text)
	require.NoError(s.t, err, s.pos)
	if fd.Kind() == protoreflect.Uint32Kind {
		require.LessOrEqual(s.t, u, uint64(math.MaxUint32), s.pos)
		return protoreflect.ValueOfUint32(uint32(u))
	}
	return protoreflect.ValueOfUint64(u)
}

// repeated reads x*200.
func repeated(text string) (string, int) {
	x, n, _ := strings.Cut(text, "*")
	if times, err := strconv.Atoi(n); err == nil {
		return x, times
	}
	return text, 1
}

// millis reads a duration, an instant, or a plain number.
func (s *script) millis(text string) (int64, error) {
	from := int64(0)
	switch {
	case text == "never":
		return job.NeverMS, nil
	case strings.HasPrefix(text, "@"):
		from, text = rigStart, text[1:]
	case strings.HasPrefix(text, "+"):
		from, text = s.now, text[1:]
	}
	d, err := time.ParseDuration(text)
	if err == nil {
		return from + d.Milliseconds(), nil
	}
	return strconv.ParseInt(text, 10, 64)
}

func parseUint(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }

// resultText returns the code and the fields that are not zero.
func resultText(r *jobpb.Result) string {
	if r.Code != jobpb.Code_OK {
		return enumText(r.Code) + ": " + r.Message
	}
	text := messageText(r.ProtoReflect())
	if text == "" || text[0] == '\n' {
		return "ok" + text
	}
	return "ok " + text
}

// flat are the messages that are shown as if their fields were those of the message
// around them.
var flat = map[protoreflect.Name]bool{"details": true, "options": true}

// bare are the fields that are shown without their names.
var bare = map[protoreflect.Name]bool{"state": true, "kind": true, "code": true, "outcome": true}

// messageText returns the fields that are set and not hidden, with a line for each message
// of a list.
func messageText(m protoreflect.Message) string {
	var fields, lines []string
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		name := strings.TrimSuffix(string(fd.Name()), "_ms")
		switch v := m.Get(fd); {
		case !m.Has(fd) || hidden(m, fd):
		case fd.IsList() && fd.Message() != nil:
			for k := range v.List().Len() {
				lines = append(lines, "  "+strings.TrimSuffix(name, "s")+" "+messageText(v.List().Get(k).Message()))
			}
		case fd.IsList():
			var values []string
			for k := range v.List().Len() {
				values = append(values, valueText(fd, v.List().Get(k)))
			}
			fields = append(fields, name+"=("+strings.Join(values, ", ")+")")
		case fd.Message() != nil && flat[fd.Name()]:
			inner, more, _ := strings.Cut(messageText(v.Message()), "\n")
			if strings.HasPrefix(inner, "  ") {
				inner, more = "", inner+"\n"+more
			}
			fields, lines = appendText(fields, inner), appendText(lines, strings.TrimSuffix(more, "\n"))
		case fd.Message() != nil:
			fields = append(fields, name+"("+messageText(v.Message())+")")
		case bare[fd.Name()]:
			fields = append(fields, valueText(fd, v))
		case fd.Kind() == protoreflect.BoolKind && v.Bool():
			fields = append(fields, name)
		default:
			fields = append(fields, name+"="+valueText(fd, v))
		}
	}
	return strings.Join(appendText([]string{strings.Join(fields, " ")}, strings.Join(lines, "\n")), "\n")
}

// hidden reports whether a field that is set is not shown.
func hidden(m protoreflect.Message, fd protoreflect.FieldDescriptor) bool {
	switch fd.Name() {
	case "ttr_ms": // of adds that name none
		return m.Get(fd).Int() == record.MinuteMS
	case "modified_ms": // the model holds it
		return true
	case "history": // the add, which each job has
		return m.Get(fd).List().Len() == 1
	case "options": // of a job that is handed out; print job shows them
		return m.Descriptor().Name() == "Reserved"
	}
	return false
}

func appendText(list []string, text string) []string {
	if text == "" {
		return list
	}
	return append(list, text)
}

// durations are the fields in milliseconds that are no instants.
var durations = map[string]bool{
	"delay_ms": true, "delays_ms": true, "ttr_ms": true, "pause_ms": true, "retain_ms": true, "expire_ms": true, "spread_ms": true,
	"jitter_ms": true, "late_ms": true, "missed_after_ms": true, "base_ms": true, "max_ms": true, "timeout_ms": true,
}

func valueText(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch name := string(fd.Name()); {
	case fd.Kind() == protoreflect.EnumKind:
		return valueName(fd.Enum().Values().ByNumber(v.Enum()))
	case durations[name]:
		return durationText(v.Int())
	case strings.HasSuffix(name, "_ms"):
		return instantText(v.Int())
	case fd.Kind() == protoreflect.BytesKind:
		return plainText(string(v.Bytes()))
	case fd.Kind() == protoreflect.StringKind:
		return plainText(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// plainText quotes text that is not one word, and cuts long text.
func plainText(text string) string {
	if len(text) > 100 {
		return fmt.Sprintf("%.8s..(%d bytes)", text, len(text))
	}
	if text == "" || strings.ContainsAny(text, " \n\"") {
		return strconv.Quote(text)
	}
	return text
}

// valueName returns the name of an enum's value without the enum's prefix.
func valueName(v protoreflect.EnumValueDescriptor) string {
	var prefix strings.Builder // StateReady: STATE_READY
	for i, c := range string(v.Parent().Name()) {
		if i > 0 && c >= 'A' && c <= 'Z' {
			prefix.WriteByte('_')
		}
		prefix.WriteRune(c)
	}
	name := string(v.Name())
	if v.Parent().Name() == "RunOutcome" {
		return strings.ToLower(strings.TrimPrefix(name, "RUN_"))
	}
	return strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(name, strings.ToUpper(prefix.String())+"_"), "BODY_"))
}

func enumText(e protoreflect.Enum) string {
	return valueName(e.Descriptor().Values().ByNumber(e.Number()))
}

func durationText(ms int64) string {
	text := (time.Duration(ms) * time.Millisecond).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func instantText(ms int64) string {
	switch ms {
	case 0:
		return "none"
	case atOnce:
		return "at_once"
	case job.NeverMS:
		return "never"
	}
	if ms > job.MaxInstantMS {
		return fmt.Sprintf("%dms", ms)
	}
	return "@" + durationText(ms-rigStart)
}
