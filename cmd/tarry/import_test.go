package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
	"tarry/job"
	"tarry/push"
)

// fillCluster makes something of each kind, and jobs in all states.
func fillCluster(s *clitest.Shell) {
	s.OK("namespace", "create", "shop", "--topic-prefix", "shop.", "--id-prefix", "shop-", "--jobs", "100")
	s.OK("topic", "set", "mail", "--ttr", "30s", "--description", "letters", "--expire", "12h")
	s.OK("pause", "sms")
	s.OK("schedule", "put", "nightly", "--spec", "30 2 * * *", "--topic", "reports", "report")
	s.OK("schedule", "put", "rested", "--spec", "@daily", "--topic", "reports", "report")
	s.OK("schedule", "pause", "rested")
	s.OK("add", "-t", "mail", "later", "--id", "later", "--delay", "1h", "--header", "order=7", "--expires-at", "2040-01-01T00:00:00Z", "--backoff", "1m,2m")
	s.OK("add", "-t", "mail", "fails", "--id", "fails", "--max-attempts", "3", "--backoff", "10m")
	s.OK("reserve", "-t", "mail")
	s.OK("release", "fails", "--reason", "no route")
	s.OK("add", "-t", "mail", "dead", "--id", "dead", "--priority", "5")
	s.OK("reserve", "-t", "mail")
	s.OK("bury", "dead", "--reason", "bad address")
	s.OK("add", "-t", "shop.orders", `{"n":1}`, "--body-json", "--id", "shop-held", "--max-attempts", "1")
	s.OK("reserve", "-t", "shop.orders")
	post(s, "/v1/jobs", `{"topic":"shop.orders","body_base64":"AP8="}`) // a node names it
}

func post(s *clitest.Shell, path, body string) {
	reply, err := http.Post("http://"+os.Getenv(cli.AddrEnv)+path, "application/json", strings.NewReader(body))
	require.NoError(s.T, err)
	require.Less(s.T, reply.StatusCode, 300)
	require.NoError(s.T, reply.Body.Close())
}

// newPushShell has a node that posts to hooks.example.com.
func newPushShell(t *testing.T) *clitest.Shell {
	s := newShell(t)
	allow, err := push.ParseAllow("hooks.example.com")
	require.NoError(t, err)
	server := httptest.NewServer(api.New(api.Options{Queue: s.Queue, Operator: s.Operator, CheckPush: allow.Check}))
	t.Cleanup(server.Close)
	t.Setenv(cli.AddrEnv, server.Listener.Addr().String())
	return s
}

// exportAll returns the lines of an export of everything.
func exportAll(s *clitest.Shell) (file string, lines []string) {
	file = filepath.Join(s.T.TempDir(), "all.ndjson")
	s.OK("export", "--all", "--out", file)
	text, err := os.ReadFile(file)
	require.NoError(s.T, err)
	return file, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// imported is the answer of an import with --json.
func imported(imported, existing, different string) string {
	return `{"imported":` + imported + `,"existing":` + existing + `,"different":` + different
}

const (
	nothing  = `{"topics":0,"namespaces":0,"schedules":0,"jobs":0}`
	allOfIt  = `{"topics":2,"namespaces":1,"schedules":2,"jobs":5}`
	onlyJobs = `{"topics":0,"namespaces":0,"schedules":0,"jobs":5}`
)

func TestEverythingIsExportedAndImported(t *testing.T) {
	from := newShell(t)
	fillCluster(from)
	file, want := exportAll(from)
	require.Equal(t, imported(nothing, allOfIt, nothing)+"}\n", from.OK("import", file, "--json"), "into the cluster that it is of")

	to := newShell(t)
	require.Equal(t, imported(allOfIt, nothing, nothing)+",\"dry_run\":true}\n", to.OK("import", file, "--json", "--dry-run"))
	require.NotContains(t, to.OK("topics"), "mail")
	require.Equal(t, imported(allOfIt, nothing, nothing)+"}\n", to.OK("import", file, "--json"))
	require.NoFileExists(t, cli.ProgressFile(file+".import"))
	require.Equal(t, imported(nothing, allOfIt, nothing)+"}\n", to.OK("import", file, "--json"))
	require.Regexp(t, `(?m)^jobs +0 +5 +0$`, to.OK("import", file, "--only", "jobs"))

	// All but the instant, the id that a node had made, and so the order of the two.
	_, got := exportAll(to)
	same := func(lines []string) (all []string) {
		for _, l := range lines[1:] {
			all = append(all, regexp.MustCompile(`"id":"(shop-imported-0-\d+-\d+|\$0-\d+)"`).ReplaceAllString(l, `"id":"made"`))
		}
		return all
	}
	require.ElementsMatch(t, same(want), same(got))
	require.NotEqual(t, want[len(want)-2:], got[len(got)-2:])
}

func TestAnImportGoesOnWhereItWas(t *testing.T) {
	from := newShell(t)
	from.OK("topic", "set", "mail", "--ttr", "30s")
	from.Stdin = manyLines(2500, func(int) string { return `{"topic":"mail","body":"x"}` })
	from.OK("add", "-f", "-")
	file, _ := exportAll(from)

	to := newShell(t)
	to.Queue.FailNext(nil, nil, nil, nil, job.Unknown("leadership was lost")) // two reads, the settings, 1000 jobs
	code, _, errs := to.Run("import", file, "--patience", "0")
	require.Equal(t, cli.ExitUnknown, code, errs)
	require.Contains(t, errs, "1002 of 2503 lines are imported; run the same command again to go on")
	code, _, errs = to.Run("import", file, "--only", "jobs")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "is of an import with other flags")
	to.OK("purge", "mail", "--yes", "--all", "--state", "ready") // they were done meanwhile, and are not imported again
	require.Equal(t, `{"imported":{"topics":1,"namespaces":0,"schedules":0,"jobs":2500},"existing":`+nothing+`,"different":`+nothing+"}\n", to.OK("import", file, "--json"))
	require.Regexp(t, `(?m)^mail +0 +1500 `, to.OK("topics"))
}

func TestWhatDiffersStaysAndIsNamed(t *testing.T) {
	from := newShell(t)
	fillCluster(from)
	file, _ := exportAll(from)
	to := newShell(t)
	to.OK("topic", "set", "mail", "--ttr", "31s", "--description", "letters", "--expire", "12h")
	to.OK("schedule", "put", "nightly", "--spec", "31 2 * * *", "--topic", "reports", "report")
	to.OK("namespace", "create", "shop", "--topic-prefix", "shops.")
	to.OK("add", "-t", "mail", "another", "--id", "later")
	for _, dry := range []string{"--dry-run=true", "--dry-run=false"} {
		code, out, errs := to.Run("import", file, dry)
		require.Equal(t, cli.ExitRefused, code, errs)
		require.Regexp(t, `(?m)^topics +1 +0 +1$`, out)
		require.Regexp(t, `(?m)^namespaces +0 +0 +1$`, out)
		require.Regexp(t, `(?m)^schedules +1 +0 +1$`, out)
		require.Regexp(t, `(?m)^jobs +4 +0 +1$`, out)
		for _, says := range []string{
			`line 2: namespace "shop" is another one: id_prefix is not set here and "shop-" in the file; it stays as it is`,
			`line 3: topic "mail" has other settings: ttr is 31 here and 30 in the file`, `line 5: schedule "nightly" is another one: spec is "31 2 * * *" here`,
			`line 8: id "later" is taken by`,
		} {
			require.Contains(t, errs, says)
		}
	}
	require.Contains(t, to.OK("get", "later"), "another")
}

func TestAPushTargetNeedsItsSecretAgain(t *testing.T) {
	from := newPushShell(t)
	t.Setenv("TARRY_PUSH_SECRET", "0123456789abcdef")
	from.OK("topic", "set", "mail", "--push", "https://hooks.example.com/mail")
	file, lines := exportAll(from)
	require.NotContains(t, strings.Join(lines, "\n"), "0123456789abcdef")

	to := newPushShell(t)
	for range 2 {
		code, _, errs := to.Run("import", file)
		require.Equal(t, cli.ExitOK, code, errs)
		require.Contains(t, errs, "topic mail: its push target is left out")
	}
	require.NotContains(t, to.OK("topic", "get", "mail", "--json"), "https")
	t.Setenv("TARRY_PUSH_SECRET", "another secret, of 16 bytes")
	to.OK("topic", "set", "mail", "--push", "https://hooks.example.com/mail")
	_, _, errs := to.Run("import", file)
	require.NotContains(t, errs, "left out")
}

func TestAnImportFromNowPutsDueTimesOff(t *testing.T) {
	s := newShell(t)
	text := `{"tarry_export":1,"at":"2001-01-01T00:00:00Z","release":"x","cluster_version":2}
{"type":"topic","topic":"p","paused":true,"paused_until":"2001-01-01T10:00:00Z"}
{"type":"job","id":"a","topic":"t","state":"delayed","due_at":"2001-01-01T10:00:00Z","ttr":60,"priority":1,"max_attempts":1,"body":1}
{"type":"job","id":"b","topic":"t","state":"dead","due_at":"2001-01-01T10:00:00Z","died_at":"2001-01-01T00:00:00Z","ttr":60,"priority":1,"max_attempts":1,"body":1}
{"type":"end","topics":1,"namespaces":0,"schedules":0,"jobs":2}
`
	s.OK("import", writeFile(t, text), "--from-now")
	require.Regexp(t, `due +in (10h|9h59m)`, s.OK("get", "a"))
	require.Contains(t, s.OK("get", "b", "--json"), `"died_at":"2001-01-01T00:00:00Z"`)
	require.Contains(t, s.OK("topics", "--json"), `"paused":true`)
	s.OK("delete", "a")
	s.OK("import", writeFile(t, text))
	require.Contains(t, s.OK("get", "a", "--json"), `"state":"ready","revision":2`)
}

func TestAFileThatIsNoExportChangesNothing(t *testing.T) {
	const head = `{"tarry_export":1,"at":"2026-01-01T00:00:00Z","release":"0.2","cluster_version":2}` + "\n"
	const good = `{"type":"job","id":"a","topic":"t","state":"ready","due_at":"2026-01-01T00:00:00Z","ttr":60,"priority":1,"max_attempts":1,"body":1}` + "\n"
	const end = `{"type":"end","topics":0,"namespaces":0,"schedules":0,"jobs":1}` + "\n"
	with := func(old, new string) string { return head + good + strings.Replace(good, old, new, 1) + end }
	s := newShell(t)
	for says, text := range map[string]string{
		"it is empty": "",
		"line 1 has no tarry_export: this is no file of tarry export --all. tarry add --file adds jobs": good,
		"line 1: tarry_export is 2, a format of a newer release (9.9 wrote it); this one reads up to 1": `{"tarry_export":2,"release":"9.9"}` + "\n",
		"line 2 is the last one, but not of the type end: the file was cut":                             head + good,
		"line 4 counts 0 topics, 0 namespaces, 0 schedules, 1 jobs, but the file has 0 topics":          head + good + good + end,
		"line 4 is of the type end, but more lines follow":                                              head + good + end + good,
		"line 3 is not valid JSON at byte":                                                              head + good + "{\n" + end,
		`line 3: type is "cron"; this release knows topic, namespace`:                                   with(`"job"`, `"cron"`),
		"line 3: type is missing": with(`"type":"job",`, ``),
		"line 3: if_exists is not a field of a job; it takes those of docs/formats.md": with(`"ttr"`, `"if_exists":"keep","ttr"`),
		`line 3: due_at must be an RFC 3339 timestamp`:                                 with(`"2026-01-01T00:00:00Z"`, `5`),
		"line 3: due_at is missing":                                                    with(`"due_at":"2026-01-01T00:00:00Z",`, ``),
		"line 3: topic is missing or empty":                                            with(`"topic":"t",`, ``),
		"line 3: id is missing or empty":                                               with(`"id":"a",`, ``),
		`line 3: state is "reserved"; it is delayed, ready or dead`:                    with(`"ready"`, `"reserved"`),
		"line 3: body is missing":                                                      with(`,"body":1`, ``),
		"line 3: created_at is missing; a job whose id a node made needs it":           with(`"id":"a"`, `"id":"$0-5"`),
		"line 3: priority must be a whole number from 0 to 4294967295, not -1":         with(`"priority":1`, `"priority":-1`),
	} {
		code, _, errs := s.Run("import", writeFile(t, text))
		require.Equal(t, cli.ExitRefused, code, says)
		require.Contains(t, errs, says)
	}
	require.Empty(t, s.Queue.Ops())

	// What the rules of the values forbid is known when it is imported.
	for says, text := range map[string]string{
		"line 3: attempts is 1 of 1; a job that waits needs one more": with(`"ttr"`, `"attempts":1,"ttr"`),
		"line 3: ttr is 0 s": with(`"ttr":60`, `"ttr":0`),
	} {
		code, _, errs := s.Run("import", writeFile(t, strings.Replace(text, `"jobs":1`, `"jobs":2`, 1)))
		require.Equal(t, cli.ExitRefused, code, says)
		require.Contains(t, errs, says)
	}
	code, _, errs := s.Run("import", t.TempDir())
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "it must be a regular file")
	code, _, errs = s.Run("import", writeFile(t, head), "--only", "tokens")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, `"tokens" is none of topics, namespaces, schedules and jobs`)
	code, _, _ = s.Run("export", "--all", "mail")
	require.Equal(t, cli.ExitUsage, code)
}

// A release imports what an earlier one has exported. Files are added here, and never changed.
func TestExportsOfEarlierReleasesAreImported(t *testing.T) {
	files, err := filepath.Glob("testdata/export-*.ndjson")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, golden := range files {
		s := newPushShell(t)
		text, err := os.ReadFile(golden)
		require.NoError(t, err)
		file := writeFile(t, string(text))
		s.OK("import", file, "--only", "topics")
		t.Setenv("TARRY_PUSH_SECRET", "0123456789abcdef")
		s.OK("topic", "set", "every", "--push", "https://hooks.example.com/a", "--push-job-urls", "--push-timeout", "5s", "--push-concurrency", "3")
		s.OK("import", file)
		_, lines := exportAll(s)
		want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		require.Len(t, lines, len(want), golden)
		for i := 1; i < len(want); i++ {
			require.JSONEq(t, want[i], lines[i], "%s: line %d", golden, i+1)
		}
	}
}
