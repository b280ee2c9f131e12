package job

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// The table in the docs is generated; -update writes it.
func TestTheTableOfSettingsInTheDocs(t *testing.T) {
	const page, head = "../docs/limits.md", "| setting | what it does | without it |\n|---|---|---|\n"
	var rows strings.Builder
	for _, s := range Settings {
		help := s.Help
		switch s.Type {
		case SettingDuration:
			help = "seconds: " + help
		case SettingChoice:
			help = "`" + strings.Join(s.Choices, "` or `") + "`: " + help
		case SettingSwitch:
			help = "`true`: " + help
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", s.Name, help, s.Default)
	}
	tableInDocs(t, page, head, rows.String())
}

func TestTheTableOfDefaultsInTheDocs(t *testing.T) {
	const page, head = "../docs/configuration.md", "| setting | values | default | why this default |\n|---|---|---|---|\n"
	var rows strings.Builder
	for _, s := range Settings {
		require.NotEmpty(t, s.Why, s.Name)
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", s.Name, valuesOf(s), s.Default, s.Why)
	}
	tableInDocs(t, page, head, rows.String())
}

// valuesOf describes what a setting may be.
func valuesOf(s *Setting) string {
	least, most, unit := s.Range()
	switch {
	case unit != "" && most > 1e15:
		return fmt.Sprintf("%v or more", least)
	case unit != "":
		return strings.TrimSuffix(fmt.Sprintf("%s to %s %s", grouped(least), grouped(most), unit), " a number of jobs or attempts")
	}
	switch s.Type {
	case SettingChoice:
		return "`" + strings.Join(s.Choices, "` or `") + "`"
	case SettingSwitch:
		return "`true` or `false`"
	case SettingText:
		return fmt.Sprintf("1 to %d bytes", MaxNameBytes)
	case SettingNames:
		return fmt.Sprintf("up to %d names", MaxIndexHeaders)
	case SettingBackoff:
		return fmt.Sprintf("a delay, up to %d delays, or `base`, `factor` and `max` ([retries.md](retries.md))", MaxBackoffDelays)
	}
	return "a URL, or an object ([push.md](push.md))"
}

// grouped writes a number with a comma after each three digits.
func grouped(n float64) string {
	text := strconv.FormatFloat(n, 'f', -1, 64)
	whole, _, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

var update = flag.Bool("update", false, "write the tables of the docs anew")

// tableInDocs compares the rows below the head of a table with the page; -update writes
// them.
func tableInDocs(t *testing.T, page, head, rows string) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), head)
	require.True(t, found)
	end := strings.Index(rest, "\n\n") + 1
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+head+rows+rest[end:]), 0o644))
		return
	}
	require.Equal(t, rows, rest[:end])
}

// Every field of the settings has a row, except the revision, which the state machine sets.
func TestEverySettingHasARow(t *testing.T) {
	names := map[string]bool{"revision": true}
	for _, s := range Settings {
		names[string(s.field.Name())] = true
	}
	fields := (*jobpb.TopicSettings)(nil).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		require.True(t, names[string(fields.Get(i).Name())], fields.Get(i).Name())
	}
}

func TestBoundsOfSettings(t *testing.T) {
	require.NoError(t, CheckSettings(nil))
	require.NoError(t, CheckSettings(&jobpb.TopicSettings{MaxPending: new(uint64(1 << 63)), MaxReserved: new(uint64(1 << 63))}))
	for says, s := range map[string]*jobpb.TopicSettings{
		"ttr is 0 s; it must be between 0.001 and 315360000 s":                           {TtrMs: new(int64(0))},
		"expire is -0.001 s; it must be between 0 and 1000000000 s":                      {ExpireMs: -1},
		"spread is 604800.001 s; it must be between 0 and 604800 s":                      {SpreadMs: 604_800_001},
		"retain is -1 s; it must be between 0 and 31536000 s":                            {RetainMs: -1000},
		"max_reserved is 0; it must be at least 1 (pause the topic to hand out nothing)": {MaxReserved: new(uint64(0))},
		"rate is 1000000.001 jobs a second; it must be between 0.001 and 1000000":        {RateMilli: 1_000_000_001},
		"burst is 1000001; it must be between 1 and 1000000":                             {RateMilli: 1, Burst: 1_000_001},
		"burst is 1, but there is no rate for it; give both":                             {Burst: 1},
		"expiry is 2; it must be between 0 and 1":                                        {Expiry: 2},
		"late_finish is -1; it must be between 0 and 1":                                  {LateFinish: -1},
		"push.url has 0 bytes; it takes 1 to 2000, of UTF-8":                             {Push: &jobpb.PushTarget{}},
	} {
		require.EqualError(t, CheckSettings(s), says)
	}
}
