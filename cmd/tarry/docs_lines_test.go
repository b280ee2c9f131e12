package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
)

// commandWords splits the beginning of a shell's line into words, up to what ends a command: a pipe,
// a redirection, a comment, the end of a substitution. What is in quotes is one word.
func commandWords(line string) (words []string) {
	var word strings.Builder
	in, quote := false, rune(0)
	flush := func() {
		if in {
			words = append(words, word.String())
		}
		word.Reset()
		in = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ' || r == '\t':
			flush()
		case strings.ContainsRune("|<>&;)", r), r == '#' && !in:
			if (r == '<' || r == '>') && strings.Trim(word.String(), "0123456789") == "" {
				in = false // 2>/dev/null
			}
			flush()
			return words
		default:
			in = true
			word.WriteRune(r)
		}
	}
	flush()
	return words
}

// parse has a fresh command line parse words, as tarry would before it acts.
func parse(t *testing.T, words []string) error {
	root := documented(t)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(words...)
	c, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	c.SetErr(io.Discard)
	c.InitDefaultHelpFlag()
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if help, _ := c.Flags().GetBool("help"); help {
		return nil
	}
	if !c.Runnable() || c.HasSubCommands() && c.Flags().NArg() > 0 {
		return cli.Usagef("%s has no sub-command %q", c.CommandPath(), strings.Join(c.Flags().Args(), " "))
	}
	return c.ValidateArgs(c.Flags().Args())
}

// Each command of tarry in a block of sh, of text or of no language of a page is one that tarry takes: its sub-commands, its flags
// and their values, and how many arguments. Tests of integration run some of the pages; this
// one looks at all of them.
func TestCommandsInTheDocsParse(t *testing.T) {
	pages := []string{"../../README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/guides/*.md", "../../client/*.md", "../../clients/*.md", "../../clients/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	block := regexp.MustCompile("(?ms)^ *```(sh|text|)\n(.*?)^ *```")
	command := regexp.MustCompile(`(?m)(?:^ *|[|(&;] *|sudo (?:-u tarry )?|exec |do )(?:[A-Z_]+=\S+ )*(?:\./|/usr/bin/)?tarry ([a-z-].*)`)
	parsed := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, b := range block.FindAllStringSubmatch(string(text), -1) {
			for _, m := range command.FindAllStringSubmatch(strings.ReplaceAll(b[2], "\\\n", " "), -1) {
				if b[1] == "" && filepath.Base(page) == "cli.md" {
					continue // what --help prints, which has the examples in blocks of their own
				}
				if b[1] == "" && regexp.MustCompile(`^[a-z -]+: `).MatchString(m[1]) {
					continue // a message of tarry, in an output
				}
				parsed++
				words := commandWords(m[1])
				err := parse(t, words)
				if err != nil && slices.Contains(words, "...") { // it is for flags that are left out, or a value
					err = parse(t, slices.DeleteFunc(words, func(word string) bool { return word == "..." }))
				}
				// A flag that reads its file at once does not find the reader's.
				if err != nil && !strings.HasSuffix(err.Error(), ": no such file or directory") {
					t.Errorf("%s: tarry %s: %v", page, m[1], err)
				}
			}
		}
	}
	require.Greater(t, parsed, 300)
}

func TestTheWordsOfAShell(t *testing.T) {
	for line, want := range map[string][]string{
		`add --topic t 'a b' "c" | jq .`: {"add", "--topic", "t", "a b", "c"},
		`get a >/dev/null 2>&1; do x`:    {"get", "a"},
		`get a 2>&1`:                     {"get", "a"},
		`stats # why`:                    {"stats"},
		`add ""`:                         {"add", ""},
		`server &`:                       {"server"},
	} {
		require.Equal(t, want, commandWords(line), line)
	}
	for line, says := range map[string]string{
		"cluster nobody": "nobody", "stats --nothing": "nothing", "nobody": "nobody", "add --delay soon --topic t b": "soon", "cluster remove": "takes ID",
	} {
		require.ErrorContains(t, parse(t, strings.Fields(line)), says)
	}
	require.NoError(t, parse(t, []string{"cluster", "remove", "n3", "--help"}))
}
