package job

import (
	"fmt"
	"strconv"
	"strings"

	"tarry/job/jobpb"
)

// serverPrefix begins every id that the server makes; producers must not use it.
const serverPrefix = "$"

// ServerID returns the id of a job that was added without one. It depends on shard and seq
// alone, so it needs no index.
func ServerID(shard uint32, seq uint64) string {
	b := make([]byte, 0, 16)
	b = append(b, serverPrefix...)
	b = strconv.AppendUint(b, uint64(shard), 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, seq, 10)
	return string(b)
}

// IsServerID reports whether an id has the server's prefix.
func IsServerID(id string) bool { return strings.HasPrefix(id, serverPrefix) }

// ParseServerID is the inverse of ServerID. It accepts only the exact form that
// ServerID writes, so that one job has one id.
func ParseServerID(id string) (shard uint32, seq uint64, ok bool) {
	rest, found := strings.CutPrefix(id, serverPrefix)
	if !found {
		return 0, 0, false
	}
	a, b, found := strings.Cut(rest, "-")
	if !found {
		return 0, 0, false
	}
	s, err := strconv.ParseUint(a, 10, 32)
	if err != nil {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(b, 10, 64)
	if err != nil || ServerID(uint32(s), n) != id {
		return 0, 0, false
	}
	return uint32(s), n, true
}

// Token names one reservation of one job. Once the job is reserved again, the token of a
// consumer whose reservation expired has an old generation. It is a name, not a secret.
type Token struct {
	Shard      uint32
	Seq        uint64
	Generation uint32 // 1 for the first reservation of a job; never 0 in a valid token
}

// TokenOf returns the token of a reservation. Its shard is 0: the seq alone says in which shard of a
// cluster with several the job is.
func TokenOf(r *jobpb.Reserved) Token { return Token{Seq: r.Seq, Generation: r.Generation} }

// String returns the form that clients use, "shard-seq-generation".
func (t Token) String() string {
	b := make([]byte, 0, 24)
	b = strconv.AppendUint(b, uint64(t.Shard), 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, t.Seq, 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, uint64(t.Generation), 10)
	return string(b)
}

// ParseToken is the inverse of String. It accepts only that form.
func ParseToken(s string) (Token, error) {
	bad := fmt.Errorf("token %.40q is not of the form shard-seq-generation", s)
	parts := strings.Split(s, "-")
	if len(parts) != 3 || len(s) > 64 {
		return Token{}, bad
	}
	shard, err1 := strconv.ParseUint(parts[0], 10, 32)
	seq, err2 := strconv.ParseUint(parts[1], 10, 64)
	gen, err3 := strconv.ParseUint(parts[2], 10, 32)
	t := Token{Shard: uint32(shard), Seq: seq, Generation: uint32(gen)}
	if err1 != nil || err2 != nil || err3 != nil || seq == 0 || gen == 0 || t.String() != s {
		return Token{}, bad
	}
	return t, nil
}

// invisible are the characters that can make two different names look the same: those that
// set the direction of text, take no space, or end lines. Go's tables change from release
// to release, so they must not decide what the state machine refuses.
var invisible = [...]struct{ first, last rune }{
	{0x00AD, 0x00AD},   // soft hyphen
	{0x034F, 0x034F},   // combining grapheme joiner
	{0x061C, 0x061C},   // Arabic letter mark
	{0x115F, 0x1160},   // Hangul fillers
	{0x17B4, 0x17B5},   // Khmer inherent vowels
	{0x180B, 0x180F},   // Mongolian selectors and vowel separator
	{0x200B, 0x200F},   // zero width space and joiners, marks of direction
	{0x2028, 0x202E},   // separators of lines and paragraphs; embeddings and overrides
	{0x2060, 0x206F},   // word joiner, invisible operators, isolates
	{0x3164, 0x3164},   // Hangul filler
	{0xFEFF, 0xFEFF},   // byte order mark
	{0xFFA0, 0xFFA0},   // Hangul filler
	{0xFFF0, 0xFFFB},   // annotations
	{0x1BCA0, 0x1BCA3}, // shorthand format
	{0x1D173, 0x1D17A}, // musical format
	{0xE0000, 0xE0FFF}, // tags and selectors
}

func isInvisible(r rune) bool {
	for _, block := range invisible {
		if r <= block.last {
			return r >= block.first
		}
	}
	return false
}
