package job

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
