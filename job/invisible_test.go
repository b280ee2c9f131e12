package job

import (
	"fmt"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func TestNamesShowWhatTheyAre(t *testing.T) {
	const spoofed = "pay\u202Egnp.exe"
	for field, err := range map[string]error{
		"topic":             CheckTopic("topic", spoofed),
		"id":                CheckID("id", spoofed),
		"token's id":        CheckRefID("token's id", spoofed),
		"consumer":          CheckConsumer("consumer", spoofed),
		"name":              CheckScheduleName("name", spoofed),
		"a name in headers": Newest().CheckJobOptions(&jobpb.JobOptions{Headers: []*jobpb.Header{{Name: spoofed}}}),
	} {
		require.ErrorContains(t, err, field+" has the character U+202E")
		require.Equal(t, CodeInvalid, CodeOf(err))
	}
	for _, name := range []string{"mail", "größe", "письмо", "メール", "البريد", "דואר", "❤️", "a b"} {
		require.NoError(t, CheckTopic("topic", name), name)
	}
}

// Every character of direction or format, or ignorable, by Go's tables, is refused, except
// those that are visible, or belong to a letter or an emoji.
func TestTheListOfInvisibleCharactersIsComplete(t *testing.T) {
	seen := map[rune]bool{0x06DD: true, 0x070F: true, 0x08E2: true, 0x110BD: true, 0x110CD: true}
	for r := rune(0x0600); r <= 0x0605; r++ {
		seen[r] = true // signs that stand around a number
	}
	seen[0x0890], seen[0x0891] = true, true
	for r := rune(0x13430); r <= 0x1343F; r++ {
		seen[r] = true // of hieroglyphs
	}
	for r := rune(0xA0); r <= unicode.MaxRune; r++ {
		hides := unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Other_Default_Ignorable_Code_Point)
		if hides && !seen[r] {
			require.True(t, isInvisible(r), fmt.Sprintf("U+%04X", r))
		}
	}
	for i := 1; i < len(invisible); i++ {
		require.Less(t, invisible[i-1].last, invisible[i].first, "the blocks are in order")
	}
}
