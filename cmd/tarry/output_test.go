package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestHarmlessTextOfJSONIsTheSameJSON(t *testing.T) {
	for _, text := range []string{"plain", "ünï ⚙ 漢字 👩‍👧", clitest.Evil, ""} {
		line, err := json.Marshal(text)
		require.NoError(t, err)
		shown := cli.Harmless(string(line), "")
		clitest.RequireHarmless(t, shown, 0)
		var back string
		require.NoError(t, json.Unmarshal([]byte(shown), &back))
		require.Equal(t, text, back)
	}
	require.Equal(t, "ünï ⚙ 漢字 👩‍👧", cli.Harmless("ünï ⚙ 漢字 👩‍👧", ""))
	clitest.RequireHarmless(t, cli.Harmless("\x9b2J \xff", ""), 0)
}

// examples are the command lines in the help of all commands that talk to a node. They may
// write files: the test goes on in a directory of its own.
func examples(t *testing.T) (all [][]string) {
	t.Chdir(t.TempDir())
	for _, c := range leaves() {
		if c.Name() == "server" || c.Name() == "bench" || c.Name() == "version" {
			continue
		}
		for line := range strings.Lines(c.Example) {
			words := fields(strings.TrimPrefix(strings.TrimSpace(line), "tarry "))
			if c.Flags().Lookup("yes") != nil {
				words = append(words, "--yes")
			}
			all = append(all, words)
		}
	}
	require.Greater(t, len(all), 30)
	return all
}

// evilAnswers are what a node may answer, with evil in every text: each thing alone,
// and as the one item of every list.
func evilAnswers(t *testing.T) (answers [][]byte) {
	for _, thing := range []any{
		&client.Job{}, &client.Reserved{}, &client.Changed{}, &client.Added{}, &client.History{}, &client.Topic{}, &client.Stats{},
		&client.Pause{}, &client.TopicSettings{}, &client.Schedule{}, &client.PlannedRun{}, &client.PastRun{}, &client.ScheduleInfo{}, &client.AddResult{}, &client.Member{}, &client.Health{},
		&client.Verification{}, &client.Clocks{}, &client.Swept{},
	} {
		fill(reflect.ValueOf(thing).Elem())
		one, err := jsonv2.Marshal(thing)
		require.NoError(t, err)
		list := append(append([]byte{'['}, one...), ']')
		lists := map[string]any{}
		for _, name := range []string{"jobs", "topics", "schedules", "runs", "settings", "members", "digests", "clocks", "events"} {
			lists[name] = jsontext.Value(list)
		}
		all, err := jsonv2.Marshal(lists)
		require.NoError(t, err)
		answers = append(answers, one, all)
	}
	return answers
}

// fill gives every field of v a value, and every text evil.
func fill(v reflect.Value) {
	switch value := v.Addr().Interface().(type) {
	case *time.Time:
		*value = time.Unix(2e9, 0)
		return
	case *json.RawMessage:
		*value, _ = json.Marshal(clitest.Evil)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(clitest.Evil)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}

// fields splits a command line as a shell does that knows only single quotes.
func fields(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// TestWhatNodesSayIsPrintedHarmless runs every command against a node whose every
// text is evil: in answers, in lists, in reasons and in errors.
func TestWhatNodesSayIsPrintedHarmless(t *testing.T) {
	answers := evilAnswers(t)
	failure, err := json.Marshal(map[string]string{"code": clitest.Evil, "error": clitest.Evil, "outcome": clitest.Evil})
	require.NoError(t, err)
	failures := map[int][]byte{http.StatusConflict: failure, http.StatusInternalServerError: []byte(clitest.Evil)}
	type reply struct {
		status int
		body   []byte
	}
	var next atomic.Pointer[reply] // a call that was given up may still come in
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		says := next.Load()
		w.WriteHeader(says.status)
		w.Write(append(says.body[:len(says.body):len(says.body)], '\n'))
	}))
	defer node.Close()
	shown := 0
	try := func(args []string, patience time.Duration, says reply) {
		next.Store(&says)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var out, errs bytes.Buffer
		run(ctx, append(args[:len(args):len(args)], "--addr", node.Listener.Addr().String(), "--patience", "0"), strings.NewReader("body"), &out, &errs)
		clitest.RequireHarmless(t, out.String(), 40)
		notes := 3
		switch args[0] {
		case "work":
			notes = 1000 // it goes on
		case "debug":
			notes = 20 // one for each file that is not in the bundle
		}
		clitest.RequireHarmless(t, errs.String(), notes)
		if strings.Contains(out.String()+errs.String(), "u202e") {
			shown++
		}
	}
	for _, args := range examples(t) {
		patience := 10 * time.Second
		if slices.Contains([]string{"stream", "work", "top"}, args[0]) || slices.Contains(args, "--wait") || slices.Contains(args, "--all") {
			patience = time.Millisecond // they would go on
		}
		for status, answer := range failures {
			try(args, patience, reply{status, answer})
		}
		for _, answer := range answers {
			try(args, patience, reply{http.StatusOK, answer})
			try(append(args[:len(args):len(args)], "--json"), patience, reply{http.StatusOK, answer})
		}
	}
	require.Greater(t, shown, 100, "the commands have shown what the node said")
}
