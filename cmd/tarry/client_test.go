package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
	"tarry/job"
)

func newShell(t *testing.T) *clitest.Shell { return clitest.NewShellOf(t, newRoot) }

func TestAJobIsChangedFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	s.OK("add", "--topic", "mail", "hello", "--id", "a", "--delay", "1h")
	require.Contains(t, s.OK("add", "--topic", "mail", "hello", "--id", "a", "--delay", "2h", "--if-exists", "postpone"), "was put off")
	require.Contains(t, s.OK("add", "--topic", "mail", "other", "--id", "a", "--delay", "1h", "--if-exists", "replace"), "gave way")
	require.Contains(t, s.OK("update", "a", "--delay", "0", "--body", "new", "--ttr", "5s", "--max-attempts", "2", "--if-revision", "1"), "a is ready")
	code, _, errs := s.Run("update", "a", "--priority", "1", "--if-revision", "1")
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, "revision 2")
	code, _, errs = s.Run("delete", "a", "--if-state", "delayed,dead")
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, "a\" is ready")
	require.Contains(t, s.OK("reserve", "--topic", "mail"), "new")
	require.Contains(t, s.OK("delete", "a"), "gone")
}

func TestABackoffFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	s.OK("add", "--topic", "mail", "x", "--id", "a", "--backoff", "2m,1h", "--header", "tenant=7", "--header", "empty=")
	s.OK("reserve", "--topic", "mail")
	require.Contains(t, s.OK("release", "a", "--reason", "no route"), "a is delayed; due in 2m")
	shown := s.OK("get", "a")
	require.Regexp(t, `(?m)^header tenant +7$`, shown)
	require.Regexp(t, `(?m)^reason +no route$`, shown)
	code, _, errs := s.Run("add", "--topic", "mail", "x", "--backoff", "2m,soon")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, `"soon" is not a duration`)
}

func TestAJobFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	require.Contains(t, s.OK("add", "--topic", "mail", "hello", "--id", "m 1", "--ttr=90s", "--priority", "5"), "m 1 is ready, due now")
	require.Contains(t, s.OK("add", "--topic", "mail", "hello", "--id", "m 1", "--ttr=90s", "--priority", "5"), "it was there already")
	require.Contains(t, s.OK("get", "m 1"), "time to run  1m30s\n")
	require.Regexp(t, `(?m)^mail +0 +1 +0 +0 +20`, s.OK("topics", "--absolute"))
	require.Regexp(t, `(?m)^1 +0 +1 +0 +0 +0$`, s.OK("stats"))

	reserved := s.OK("reserve", "--topic", "mail", "--absolute")
	require.Regexp(t, `(?m)^m 1 +0-1-1 +1 +20\S+ +hello$`, reserved)
	require.Contains(t, s.OK("touch", "m 1", "--token", "0-1-1", "--ttr", "1h"), "m 1 is reserved; ends in 1h")
	require.Contains(t, s.OK("release", "m 1", "--token", "0-1-1", "--delay", "3600", "--reason", "later"), "m 1 is delayed; due in 1h")
	require.Equal(t, "m 1 is ready\n", s.OK("kick", "m 1"))
	s.OK("reserve", "--topic", "other", "--topic", "mail")
	require.Equal(t, "m 1 is dead\n", s.OK("bury", "m 1", "--reason", "bad"))
	require.Equal(t, "1 kicked\n", s.OK("kick", "--topic", "mail", "--max", "10"))
	s.OK("reserve", "--topic", "mail")
	require.Equal(t, "m 1 is gone\n", s.OK("finish", "m 1"))

	code, _, errs := s.Run("finish", "m 1")
	require.Equal(t, cli.ExitNotFound, code)
	require.Equal(t, "tarry finish: job \"m 1\" does not exist; it may have been finished or deleted\n", errs)
}

func TestBodiesFromStandardInputAndJSON(t *testing.T) {
	s := newShell(t)
	s.Stdin = "line 1\nline 2\n"
	s.OK("add", "--topic", "t", "--id", "a", "-")
	s.OK("add", "--topic", "t", "--id", "b", "--body-json", `{"n": 1}`)
	s.OK("add", "--topic", "t", "--id", "c", "--", "--dashes")

	var bodies []any
	for line := range strings.Lines(s.OK("reserve", "--topic", "t", "--max", "10", "--json", "--finish")) {
		var j struct {
			ID   string
			Body any
		}
		require.NoError(t, json.Unmarshal([]byte(line), &j))
		bodies = append(bodies, j.ID, j.Body)
	}
	require.Equal(t, []any{"a", s.Stdin, "b", map[string]any{"n": 1.0}, "c", "--dashes"}, bodies)
	for _, id := range []string{"a", "b", "c"} {
		code, _, _ := s.Run("get", id)
		require.Equal(t, cli.ExitNotFound, code, "%s was finished", id)
	}
}

func TestReserveFindsNothing(t *testing.T) {
	s := newShell(t)
	code, out, errs := s.Run("reserve", "--topic", "t", "--wait", "10ms")
	require.Equal(t, []any{cli.ExitNothing, "", "no job is ready\n"}, []any{code, out, errs})
	code, out, errs = s.Run("reserve", "--topic", "t", "--json")
	require.Equal(t, []any{cli.ExitNothing, "", ""}, []any{code, out, errs})
}

func TestOperatorsCommands(t *testing.T) {
	s := newShell(t)
	require.Regexp(t, `(?m)^n2 +follower +yes +yes +1 +host2:7300 +host2:7301 +v0.1.0 +1 +1-2$`, s.OK("cluster", "members"))
	require.Contains(t, s.OK("cluster", "members"), "\nadmission: open\n")
	lines := strings.Split(strings.TrimSpace(s.OK("cluster", "members", "--json")), "\n")
	require.Len(t, lines, 3)
	require.Contains(t, lines[2], `"admission":"open"`)
	s.OK("cluster", "transfer-leadership")
	require.Equal(t, "leadership has moved to n2\n", s.OK("cluster", "transfer-leadership", "n2"))
	require.Equal(t, "n1 leads already\n", s.OK("cluster", "transfer-leadership", "n1"))
	require.JSONEq(t, `{"success":true,"moved":false}`, s.OK("cluster", "transfer-leadership", "n1", "--json"))
	s.OK("cluster", "remove", "n3", "--yes")
	require.Equal(t, "admitted\n", s.OK("cluster", "admit", "n4"))
	require.Contains(t, s.OK("cluster", "removed"), "n4  2023-11-14T22:13:20Z\n")
	s.OK("cluster", "join", "a:1", "b:2")
	require.Equal(t, "left\n", s.OK("cluster", "leave", "-y"))
	require.Equal(t, "the queue's clock is right again\n", s.OK("cluster", "clock", "reset"))
	require.Equal(t, []string{"transfer", "transfer n2", "remove n3", "admit n4", "join a:1,b:2", "leave", "reset clock"}, s.Operator.Calls())

	for command, says := range map[string]string{
		"health": "tarry cluster health: the cluster is not healthy: n3 is not alive: gossip has no sign of it\n",
		"verify": "tarry cluster verify: the nodes' states are not all known to be equal\n",
		"clock":  "tarry cluster clock: off by more than 5 s: n1\n",
	} {
		code, out, errs := s.Run("cluster", command)
		require.Equal(t, cli.ExitFailed, code)
		require.NotEmpty(t, out)
		require.Equal(t, says, errs)
	}
	_, clocks, _ := s.Run("cluster", "clock")
	require.Regexp(t, `(?m)^n1 +yes +\+3600.000 s +±0.002 s +no$`, clocks)
	require.Regexp(t, `(?m)^n3 +yes +- +- +yes$`, clocks)
	s.Operator.Err = job.Errorf(job.CodeQuorumWouldFail, "1 of 3 voters would be left alive, 2 are needed")
	code, _, errs := s.Run("cluster", "remove", "n2", "--yes")
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "2 are needed")
}

func TestWithoutACommandThereIsHelp(t *testing.T) {
	s := newShell(t)
	require.Contains(t, s.OK(), "Usage:\n  tarry [command]")
	require.Contains(t, s.OK("cluster"), "Usage:\n  tarry cluster [command]")
}

// A topic is an argument or --topic, whatever the command.
func TestATopicIsAnArgumentOrAFlag(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "jobs")
	require.NoError(t, os.WriteFile(file, []byte(`{"body":"in a file"}`), 0o600))
	for _, topic := range [][]string{{"t"}, {"--topic", "t"}, {"-topic", "t"}} {
		with := func(command string, rest ...string) string {
			return s.OK(slices.Concat([]string{command}, topic, rest)...)
		}
		with("add", "-i", "a", "in a")
		require.Contains(t, with("list"), "ready")
		require.Regexp(t, `(?m)^t +`, with("topics"))
		require.Contains(t, with("reserve"), "in a")
		s.OK("finish", "a")
		with("add", "--file", file)
		require.Equal(t, "in a file\n", with("work", "--exec", "cat", "--max", "1"))
	}
}

func TestAnEmptyListSaysOfWhat(t *testing.T) {
	s := newShell(t)
	for line, says := range map[string]string{
		"list mail":              "no jobs in the topic mail\n",
		"list mail --state dead": "no dead jobs in the topic mail\n",
		"list mail --reason x":   "no jobs in the topic mail match\n",
		"list --id-prefix x":     "no jobs match\n",
	} {
		code, out, errs := s.Run(strings.Fields(line)...)
		require.Equal(t, []any{cli.ExitOK, "", says}, []any{code, out, errs}, line)
	}
}

// What a note has said of the attempts is not said again at the end.
func TestAnErrorIsSaidOnce(t *testing.T) {
	var out, errs strings.Builder
	require.Equal(t, cli.ExitUnreachable, run(t.Context(), []string{"stats", "--addr", "127.0.0.1:1", "--patience", "100ms"}, nil, &out, &errs))
	require.Regexp(t, `^tarry stats: no node answered at 127.0.0.1:1: .*; is the server running\? start one with: tarry server; trying again for up to 0s\n`+
		`tarry stats: no attempt has succeeded\n$`, errs.String())
}

func TestCommandLinesThatMakeNoSense(t *testing.T) {
	s := newShell(t)
	for line, says := range map[string]string{
		"fly":                               `no command "fly"`,
		"add":                               "takes either BODY or --file",
		"add x":                             "TOPIC is missing; it stands before BODY",
		"add t a b":                         "takes [TOPIC] [BODY]; 3 given",
		"add --topic t a b":                 "takes either TOPIC or --topic",
		"add --topic t --delay soon x":      `invalid value "soon" for flag --delay: "soon" is not a duration`,
		"cluster health --wait --addr x":    "flag --wait has no value: it was followed by --addr, which is a flag",
		"reserve --topic t --max --addr=x":  "flag --max has no value: it was followed by --addr=x",
		"add --topic t --delay -1 x":        "out of range",
		"add --topic t --priority -1 x":     "whole number",
		"add --topic t --due-at tomorrow x": "RFC 3339",
		"add --topic t --delay 1 --due-at 2030-01-01T00:00:00Z x": "give one",
		"add --topic t --dealy 1 x":                               "not defined: --dealy; did you mean --delay?",
		"add --toppic t x":                                        "not defined: --toppic; did you mean --topic?",
		"add -t t -priorty 1 x":                                   "not defined: -priorty; did you mean --priority?",
		"add -t t --prio 1 x":                                     "did you mean --priority?",
		"add -t t --json --xyz x":                                 "not defined: --xyz; see tarry add --help",
		"get --id t":                                              "not defined: --id; ID is an argument, without a flag; see",
		"list t --topic t":                                        "takes [TOPIC]; 2 given",
		"--json fly":                                              `no command "fly"`,
		"--jsn stats":                                             "not defined: --jsn; did you mean --json?",
		"--json version":                                          "tarry version: flag provided but not defined: --json",
		"--json":                                                  "not defined: --json",
		"add --topic t --ttr 0 x":                                 "leave the flag out",
		"add --topic t --body-json {x":                            "BODY is not a JSON value",
		"touch a --ttr 0":                                         "leave the flag out",
		"update a --ttr 0":                                        "leave the flag out",
		"stream --topic t --heartbeat 0":                          "leave the flag out",
		"finish a --token=":                                       "it is empty",
		"delete a --token=":                                       "it is empty",
		"delete a --if-state=":                                    "it is empty",
		"delete a --if-revision 0":                                "revisions start with 1",
		"reserve":                                                 "TOPIC is missing",
		"reserve --topic t --max 0":                               "--max is 0",
		"finish":                                                  "takes ID",
		"finish a --ttr 1":                                        "not defined: --ttr",
		"kick":                                                    "either an ID or --topic",
		"kick a --topic t":                                        "either an ID or --topic",
		"get a --addr nowhere":                                    "host:port",
		"topics --addr ,":                                         "at least one address",
		"cluster fly":                                             `tarry cluster: there is no command "fly"; see tarry cluster --help`,
		"clutser members":                                         "did you mean cluster?",
		"fly --far":                                               `no command "fly"`,
		"add -t t -q x":                                           "not defined: -q",
		"reserve -t t -n many":                                    `invalid value "many" for flag --max: it is not a whole number`,
		"cluster leave --addr a:1,b:2":                            "names 2",
		"version x":                                               "flags only",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, errs := s.Run(strings.Fields(line)...)
			require.Equal(t, cli.ExitUsage, code)
			require.Empty(t, out)
			require.Contains(t, errs, says)
			require.Empty(t, s.Queue.Ops())
		})
	}
}

func TestCommonFlagsMayStandBeforeTheCommand(t *testing.T) {
	s := newShell(t)
	addr := os.Getenv(cli.AddrEnv)
	t.Setenv(cli.AddrEnv, "127.0.0.1:1")
	for _, line := range []string{
		"--json stats", "-j stats", "-json stats", "--addr A --json stats", "-a A -j stats", "--addr=A --json stats", "-aA --json stats", "--json --patience 1 stats", "--absolute stats -j",
		"stats --json", "-a A stats --json",
	} {
		args := strings.Fields(strings.ReplaceAll(line, "A", addr))
		if !strings.Contains(line, "A") {
			args = append([]string{"--addr", addr}, args...)
		}
		require.Contains(t, s.OK(args...), `{"topics":0,`, line)
	}
	require.Contains(t, s.OK("--addr", addr, "cluster", "-j", "members"), `{"id":"n1"`)
	s.OK("--addr", addr, "add", "-t", "t", "--", "--json")
	require.Contains(t, s.OK("-a", addr, "reserve", "-t", "t", "--raw"), "--json")
}

// leaves are the commands that do something, with the words that name them.
func leaves() (all []*cobra.Command) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && !c.HasSubCommands() || c.HasParent() && c.Name() == "clock" {
			all = append(all, c)
		}
		for _, next := range c.Commands() {
			walk(next)
		}
	}
	walk(newRoot())
	return all
}

// local are commands that call no node.
var local = []string{"tarry check", "tarry keygen", "tarry secrets keygen", "tarry plan", "tarry backup inspect", "tarry backup verify", "tarry restore", "tarry recover", "tarry recover peers", "tarry auth reset"}

func TestHelpNamesFlagsAndAnExample(t *testing.T) {
	s := newShell(t)
	require.Greater(t, len(leaves()), 40)
	for _, c := range leaves() {
		words := strings.Fields(c.CommandPath())[1:]
		require.Regexp(t, `(?m)^  `+c.Name()+` +`+regexp.QuoteMeta(c.Short)+`$`, s.OK(append([]string{"help"}, words[:len(words)-1]...)...))
		if c.Name() == "version" {
			continue
		}
		text := s.OK(append(words, "--help")...)
		require.Equal(t, text, s.OK(append([]string{"help"}, words...)...))
		require.Contains(t, text, "Usage:\n  "+c.CommandPath())
		require.Regexp(t, `Examples:\n  (# .*\n  )?`+c.CommandPath(), text)
		if words[0] != "cert" && !slices.Contains(local, c.CommandPath()) {
			require.Contains(t, text, "host:port", c.CommandPath())
		}
		require.NotEmpty(t, c.Long, c.CommandPath())
	}
	require.Contains(t, s.OK("cluster", "help"), "transfer-leadership")
}

func TestLongFlagsTakeOneDashToo(t *testing.T) {
	s := newShell(t)
	s.OK("add", "-topic", "mail", "-id=a", "-header", "x=-topic", "-ttr", "5s", "--", "-body")
	s.OK("add", "-t", "mail", "-id", "-topic", "--body-json", "1") // a value that looks like a flag
	require.Contains(t, s.OK("get", "-json", "a"), `"body":"-body"`)
	require.Contains(t, s.OK("get", "-json=true", "--", "-topic"), `"topic":"mail"`)
	require.Contains(t, s.OK("list", "-help"), "Usage:")
}

func TestAMisspelledLongFlagIsNoShortOne(t *testing.T) {
	s := newShell(t)
	for _, flag := range []string{"-toppic", "-topi", "-topicc=x"} {
		code, _, errs := s.Run("add", flag, "mail", "x")
		require.Equal(t, cli.ExitUsage, code, flag)
		require.Contains(t, errs, "did you mean --topic?", flag)
	}
	s.OK("add", "-tmail", "--id", "a", "x")
	require.Contains(t, s.OK("get", "-j", "a"), `"topic":"mail"`)
}

func TestVersion(t *testing.T) {
	s := newShell(t)
	for _, line := range []string{"version", "--version", "-v", "-version"} {
		require.Equal(t, "tarry "+cli.Version+"\n", s.OK(line))
	}
}

func TestCompletion(t *testing.T) {
	s := newShell(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		require.Contains(t, s.OK("completion", shell), "__complete")
	}
	require.Contains(t, s.OK("__complete", "clus"), "cluster\tmembers")
	require.Contains(t, s.OK("__complete", "reserve", "--wa"), "--wait\ttime to wait")
	require.Regexp(t, `^conflict\nkeep\n`, s.OK("__complete", "add", "--if-exists", ""))
	s.OK("add", "-t", "mail", "x")
	s.OK("add", "-t", "sms", "x")
	for _, line := range [][]string{{"reserve", "--topic", "m"}, {"reserve", "-t", "m"}, {"purge", "m"}, {"list", "m"}, {"topic", "set", "m"}, {"kick", "a", "--to-topic", "m"}} {
		require.Regexp(t, `^mail\n:`, s.OK(append([]string{"__complete"}, line...)...), line)
	}
	s.OK("add", "-t", "post", "-i", "order-5", "x")
	s.OK("schedule", "put", "nightly", "--spec", "@daily", "-t", "mail", "x")
	for line, names := range map[string]string{
		"get a order-": "order-5", "delete o": "order-5", "finish x": "", "get ": "",
		"schedule pause ": "nightly", "schedule put ": "", "topic unset mail retain-": "retain-max",
		"cluster remove ": "n1 n2 n3", "cluster replace n1 n3": "n3", "cluster admit ": "n4", "auth mode ": "off report enforce",
		"topic set mail --late-finish ": "accept refuse", "move x --to p": "post",
	} {
		_, found, _ := strings.Cut("\n"+s.OK(append([]string{"__complete"}, strings.Split(line, " ")...)...), "\n")
		found, _, _ = strings.Cut(found, ":4")
		require.Equal(t, names, strings.Join(strings.Fields(found), " "), line)
	}
	for _, line := range []string{"add --file ", "list --tls-ca ", "restore ", "cert show a.crt ", "work --exec ", "backup --out "} {
		require.Regexp(t, `^:0\n`, s.OK(append([]string{"__complete"}, strings.Split(line, " ")...)...), "files: "+line)
	}
	t.Setenv(cli.AddrEnv, "127.0.0.1:1")
	require.Regexp(t, `^:`, s.OK("__complete", "purge", ""), "no node is there")
}

func TestNobodyIsThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	s := &clitest.Shell{T: t, Root: newRoot}
	code, _, errs := s.Run("add", "--topic", "t", "x", "--addr", addr, "--patience", "0")
	require.Equal(t, cli.ExitUnreachable, code)
	require.Equal(t, "tarry add: no node answered at "+addr+": connection refused; is the server running? start one with: tarry server\n", errs)
}

func TestAnUnknownOutcomeIsSaid(t *testing.T) {
	s := newShell(t)
	s.Queue.FailNext(job.Unknown("leadership was lost"))
	code, _, errs := s.Run("kick", "a")
	require.Equal(t, cli.ExitUnknown, code)
	require.Equal(t, "tarry kick: leadership was lost (the outcome is unknown: it may have been done)\n", errs)
}

func TestWithoutALeaderTheReasonIsSaidAtOnce(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		if r.URL.Path == "/readyz" {
			io.WriteString(w, `{"ready":false,"reasons":["there is no leader"]}`)
			return
		}
		io.WriteString(w, `{"success":false,"code":"not_applied","error":"there is no leader","outcome":"not_applied"}`)
	}))
	defer node.Close()
	s := newShell(t)
	t.Setenv(cli.AddrEnv, "127.0.0.1:1,"+node.Listener.Addr().String())
	for _, line := range []string{"cluster remove n2 --yes", "reserve --topic t --wait 100ms", "add --topic t x", "get x"} {
		code, _, errs := s.Run(append(strings.Fields(line), "--patience", "1s")...)
		require.Equal(t, cli.ExitUnreachable, code)
		require.Contains(t, errs, "there is no leader; trying again for up to ", line)
		require.NotContains(t, errs, "is the server running", line)
		require.Equal(t, strings.HasPrefix(line, "reserve"), strings.Contains(errs, "no node can serve now: there is no leader; waiting"), errs)
	}
}

func TestReadyWaitsOnlyIfItIsAskedTo(t *testing.T) {
	looks := 0
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if looks++; looks < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		io.WriteString(w, `{"reasons":["there is no leader"]}`)
	}))
	defer node.Close()
	s := newShell(t)
	t.Setenv(cli.AddrEnv, node.Listener.Addr().String())
	code, _, errs := s.Run("ready")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "there is no leader")
	require.Equal(t, 1, looks)
	s.OK("ready", "--patience", "1m")
	require.Equal(t, 3, looks)
}

func TestAnEmptyValueIsNoWiderCall(t *testing.T) {
	s := newShell(t)
	s.OK("add", "--topic", "t", "--id", "a", "x")
	for line, says := range map[string][]string{
		"--id is empty":        {"add", "--topic", "t", "--id", "", "x"},
		"--state is empty":     {"list", "t", "--state", ""},
		"--id-prefix is empty": {"purge", "t", "--state", "ready", "--all", "--id-prefix", ""},
		"--reason is empty":    {"kick", "--topic", "t", "--reason="},
		"--states is empty":    {"move", "--topic", "t", "--to", "u", "--states", ""},
		"one of them is empty": {"cluster", "transfer-leadership", ""},
	} {
		code, _, errs := s.Run(says...)
		require.Equal(t, cli.ExitUsage, code, says)
		require.Contains(t, errs, line)
	}
	require.Contains(t, s.OK("list", "t"), "ready", "nothing was purged or moved")
	s.OK("add", "--topic", "t", "") // a body may be empty
	require.Empty(t, s.Operator.Calls())
}
