package server

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

func noEnv(string) (string, bool) { return "", false }

// parseServerConfig gives what tarry server would start with.
func parseServerConfig(args []string, env func(string) (string, bool)) (c *Config, err error) {
	cmd := Command(env, func(_ context.Context, with *Config, _ io.Writer) error {
		c = with
		return nil
	})
	cmd.SetFlagErrorFunc(cli.FlagError)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(io.Discard)
	cmd.SetArgs(append([]string{}, args...)) // nil would be those of the test
	err = cmd.Execute()
	return c, err
}

func TestServerDefaultsAreASingleNodeOnLoopback(t *testing.T) {
	c, err := parseServerConfig(nil, noEnv)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:7300", c.HTTPAddr)
	require.Equal(t, "127.0.0.1:7301", c.ClusterAddr)
	require.Equal(t, "127.0.0.1:7302", c.GossipAddr)
	require.Equal(t, "127.0.0.1:11300", c.BeanstalkAddr)
	require.Equal(t, "tarry-data", c.DataDir)
	require.Equal(t, 1, c.expect())
}

func TestFlagWinsOverEnvironmentOverFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tarry.yaml")
	require.NoError(t, os.WriteFile(file, []byte("node-id: from-file\ndata-dir: /from/file\nhttp-addr: 127.0.0.1:1\njoin: [a:1, 'b:2']\nbootstrap-expect: 3\n"), 0o600))
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"TARRY_NODE_ID": "from-env", "TARRY_HTTP_ADDR": "127.0.0.1:2", "TARRY_CONFIG": file}[name]
		return v, ok
	}
	c, err := parseServerConfig([]string{"--http-addr", "127.0.0.1:3"}, env)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:3", c.HTTPAddr)
	require.Equal(t, "from-env", c.NodeID)
	require.Equal(t, "/from/file", c.DataDir)
	require.Equal(t, []string{"a:1", "b:2"}, c.Seeds())
	require.Equal(t, 3, c.expect())
}

func TestModeOfTheDashboardIsSetAsAnyOther(t *testing.T) {
	c, err := parseServerConfig(nil, noEnv)
	require.NoError(t, err)
	require.Equal(t, UIOn, c.UI)
	c, err = parseServerConfig(nil, func(name string) (string, bool) { return "readonly", name == "TARRY_UI" })
	require.NoError(t, err)
	require.Equal(t, UIReadOnly, c.UI)
	file := filepath.Join(t.TempDir(), "tarry.yaml")
	require.NoError(t, os.WriteFile(file, []byte("ui: off\n"), 0o600)) // which YAML could take for false
	c, err = parseServerConfig([]string{"--config", file}, noEnv)
	require.NoError(t, err)
	require.Equal(t, UIOff, c.UI)
}

func TestBackupsHaveAScheduleAndADirectory(t *testing.T) {
	c, err := parseServerConfig(nil, noEnv)
	require.NoError(t, err)
	require.Nil(t, c.Backups.schedule())
	file := filepath.Join(t.TempDir(), "tarry.yaml")
	require.NoError(t, os.WriteFile(file, []byte("backup-schedule: \"@daily\"\nbackup-zone: Europe/Berlin\nbackup-keep: 3\n"), 0o600))
	c, err = parseServerConfig([]string{"--config", file, "--data-dir", "/data/n1"}, func(name string) (string, bool) { return "/data/n1-backups", name == "TARRY_BACKUP_DIR" })
	require.NoError(t, err)
	b := c.Backups.schedule()
	require.Equal(t, "/data/n1-backups", b.Dir)
	require.Equal(t, 3, b.Keep)
	require.EqualValues(t, 32<<20, b.Rate)
	require.EqualValues(t, 23*3600*1000, b.Timetable.Next(0), "midnight in Berlin")
}

func TestNamesByWhichClientsCallANode(t *testing.T) {
	for args, hosts := range map[string][]string{
		"":                    {"127.0.0.1"},
		"--advertise-host n1": {"n1", "127.0.0.1"},
		"--http-hosts a,*.b --http-addr n2:1 --insecure": {"a", "*.b", "n2"},
	} {
		c, err := parseServerConfig(strings.Fields(args), noEnv)
		require.NoError(t, err)
		require.Equal(t, hosts, c.hosts(), args)
	}
	c, err := parseServerConfig(nil, func(name string) (string, bool) { return "queue.example", name == "TARRY_HTTP_HOSTS" })
	require.NoError(t, err)
	require.Equal(t, []string{"queue.example", "127.0.0.1"}, c.hosts())
}

func TestJoinWithoutExpectOnlyEverJoins(t *testing.T) {
	c, err := parseServerConfig([]string{"--join", "n1:7302"}, noEnv)
	require.NoError(t, err)
	require.Zero(t, c.expect())
}

func TestBadServerSettingsAreNamed(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("nodeid: x\n"), 0o600))
	for _, c := range []struct {
		args []string
		env  map[string]string
		says string
	}{
		{args: []string{"--http-addr", "7300"}, says: "--http-addr"},
		{args: []string{"--node-id", ""}, says: "--node-id"},
		{args: []string{"--bootstrap-expect", "-5"}, says: "-bootstrap-expect: it must be"},
		{args: []string{"--node-id", strings.Repeat("n", 65)}, says: "--node-id has 65 bytes; it takes 1 to 64"},
		{args: []string{"--bootstrap-expect", "10"}, says: "it must be a whole number from 0 to 9"},
		{args: []string{"--log-level", "loud"}, says: "it must be debug, info, warn or error"},
		{args: []string{"--bootstrap-expect", "-1"}, says: "-bootstrap-expect: it must be"},
		{args: []string{"--max-body-bytes", "99999999"}, says: "--max-body-bytes"},
		{args: []string{"--beanstalk-addr", "11300"}, says: "--beanstalk-addr"},
		{args: []string{"--beanstalk-max-job-size", "1048577"}, says: "--beanstalk-max-job-size"},
		{args: []string{"--beanstalk-max-job-size", "0"}, says: "--beanstalk-max-job-size"},
		{args: []string{"--http-hosts", "queue:7300"}, says: "--http-hosts has \"queue:7300\""},
		{args: []string{"--http-hosts", "a,q*.example"}, says: "--http-hosts has \"q*.example\""},
		{args: []string{"--ui", "true"}, says: "--ui is \"true\"; it must be on, readonly or off"},
		{args: []string{"--cors-origins", "app.example"}, says: `"app.example" is not an origin`},
		{env: map[string]string{"TARRY_CORS_ORIGINS": "null"}, says: "TARRY_CORS_ORIGINS=\"null\": null is"},
		{args: []string{"--log-format", "xml"}, says: "--log-format"},
		{args: []string{"--max-clock-offset", "99ms"}, says: "--max-clock-offset is 99ms; it must be between 100ms and 1h0m0s"},
		{env: map[string]string{"TARRY_MAX_CLOCK_OFFSET": "5"}, says: "TARRY_MAX_CLOCK_OFFSET=\"5\": it is not a duration such as 5s"},
		{args: []string{"--max-clock-offset", "5"}, says: "it is not a duration such as 5s"},
		{args: []string{"--max-connections", "many"}, says: "it is not a whole number"},
		{env: map[string]string{"TARRY_BACKUP_KEEP": "99999999999999999999"}, says: "it is out of range"},
		{env: map[string]string{"TARRY_INSECURE": "yes"}, says: "it is neither true nor false"},
		{args: []string{"--join-invitation-file", "i"}, says: "--join-invitation-file needs --join"},
		{args: []string{"--non-voter"}, says: "--non-voter needs --join"},
		{args: []string{"--non-voter", "--join", "n1:7302", "--bootstrap-expect", "3"}, says: "--non-voter needs --join"},
		{args: []string{"--backup-dir", "b"}, says: "--backup-dir needs --backup-schedule"},
		{args: []string{"--s3-region", "eu"}, says: "need a --backup-dir of the form s3://"},
		{args: []string{"--backup-schedule", "@daily", "--backup-dir", "s3://B"}, says: "--backup-dir: s3://B: the name of the bucket"},
		{args: []string{"--backup-schedule", "@daily", "--backup-dir", "s3://backups", "--s3-endpoint", "store"}, says: "--s3-endpoint is"},
		{args: []string{"--backup-schedule", "@daily"}, says: "--backup-schedule needs --backup-dir"},
		{args: []string{"--backup-schedule", "daily", "--backup-dir", "b"}, says: "--backup-schedule is \"daily\" with 1 fields"},
		{args: []string{"--backup-schedule", "@every 1500ms", "--backup-dir", "b"}, says: "it takes whole seconds"},
		{args: []string{"--backup-schedule", "0 0 30 2 *", "--backup-dir", "b"}, says: "it never comes due"},
		{args: []string{"--backup-schedule", "@daily", "--backup-dir", "b", "--backup-zone", "Mars"}, says: "--backup-zone is \"Mars\""},
		{args: []string{"--backup-schedule", "@daily", "--backup-dir", "tarry-data/b"}, says: "--backup-dir is tarry-data/b, within --data-dir"},
		{args: []string{"--backup-keep", "0"}, says: "--backup-keep is 0; it must be between 1 and 10000"},
		{args: []string{"--backup-rate", "1000"}, says: "--backup-rate is 1000; it must be 0, for no limit, or between 65536 and"},
		{args: []string{"n1"}, says: "flags only"},
		{args: []string{"--config", bad}, says: `no setting "nodeid"`},
		{args: []string{"--config", "/nowhere.yaml"}, says: "configuration file"},
		{env: map[string]string{"TARRY_BOOTSTRAP_EXPECT": "many"}, says: "TARRY_BOOTSTRAP_EXPECT"},
	} {
		_, err := parseServerConfig(c.args, func(n string) (string, bool) { v, ok := c.env[n]; return v, ok })
		require.ErrorContains(t, err, c.says, "%v %v", c.args, c.env)
	}
}

func TestOtherMachinesAreLetInOnlyByRequest(t *testing.T) {
	for _, flag := range []string{"http-addr", "cluster-addr", "gossip-addr", "beanstalk-addr", "pprof-addr"} {
		for _, local := range []string{"127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1"} {
			_, err := parseServerConfig([]string{"--" + flag, local}, noEnv)
			require.NoError(t, err)
		}
		for _, open := range []string{":1", "0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[fe80::1%lo]:1", "n1:1"} {
			args := []string{"--" + flag, open, "--advertise-host", "n1"}
			_, err := parseServerConfig(args, noEnv)
			require.ErrorContains(t, err, "--"+flag+" is \""+open+"\"")
			require.ErrorContains(t, err, "--insecure")
			require.ErrorContains(t, err, "TARRY_INSECURE")
			_, err = parseServerConfig(append(args, "--insecure"), noEnv)
			require.NoError(t, err)
			_, err = parseServerConfig(args, func(name string) (string, bool) { return "true", name == "TARRY_INSECURE" })
			require.NoError(t, err)
		}
	}
}

func TestBeanstalkCanBeSwitchedOff(t *testing.T) {
	for _, off := range []string{"", "off"} {
		c, err := parseServerConfig([]string{"--beanstalk-addr", off}, noEnv)
		require.NoError(t, err)
		require.Empty(t, c.beanstalkAddr())
		port, err := TakeBeanstalk(c, nil)
		require.NoError(t, err)
		require.Equal(t, "off", port.String())
		port.close()
	}
}

func TestAdvertisedNames(t *testing.T) {
	hostname, err := os.Hostname()
	require.NoError(t, err)
	for _, c := range []struct{ args, host, http string }{
		{"", "", "127.0.0.1:7300"},
		{"--cluster-addr 0.0.0.0:1 --http-addr 0.0.0.0:2", hostname, hostname + ":2"},
		{"--cluster-addr 0.0.0.0:1 --http-addr :2 --advertise-host n1", "n1", "n1:2"},
		{"--cluster-addr 10.0.0.1:1 --http-addr 10.0.0.2:2", "", "10.0.0.2:2"},
		{"--cluster-addr 10.0.0.1:1 --http-addr 10.0.0.2:2 --advertise-host n1", "n1", "10.0.0.2:2"},
	} {
		cfg, err := parseServerConfig(append(strings.Fields(c.args), "--insecure"), noEnv)
		require.NoError(t, err)
		require.Equal(t, c.host, cfg.AdvertiseHost, c.args)
		require.Equal(t, c.http, cfg.advertisedHTTP(), c.args)
	}
}

// The file of settings on the page is one that a node takes.
func TestTheExampleOfAConfigurationFileIsValid(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/configuration.md")
	require.NoError(t, err)
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, m)
	file := t.TempDir() + "/tarry.yaml"
	require.NoError(t, os.WriteFile(file, m[1], 0o600))
	c, err := parseServerConfig([]string{"--config", file}, noEnv)
	require.NoError(t, err)
	require.Equal(t, "n1", c.AdvertiseHost)
	require.Len(t, c.Seeds(), 3)
	require.True(t, c.Insecure)
}

func TestSettingsAreShownWithoutSecrets(t *testing.T) {
	c, err := parseServerConfig([]string{"--push-allow", "hooks.example", "--otlp-endpoint", "http://127.0.0.1:4318", "--join", "a:1"}, noEnv)
	require.NoError(t, err)
	shown := map[string]job.NodeSetting{}
	for _, v := range c.settings {
		require.NotContains(t, v.Value, "geheim")
		shown[v.Name] = v
	}
	require.Equal(t, job.NodeSetting{Name: "push-allow", Hidden: true}, shown["push-allow"])
	require.Equal(t, job.NodeSetting{Name: "cors-origins"}, shown["cors-origins"], "not set")
	require.Equal(t, "a:1", shown["join"].Value)
	require.Equal(t, "0", shown["bootstrap-expect"].Value)
	require.Equal(t, "http://127.0.0.1:4318", shown["otlp-endpoint"].Value)
	require.Equal(t, "http://127.0.0.1:4318/v1", withoutSecrets("http://ann:geheim@127.0.0.1:4318/v1?key=geheim#geheim"))
}

func TestWithoutACollectorNothingOfTracesRuns(t *testing.T) {
	require.Nil(t, traces{}.post())
	traces{}.close()
}

func TestTheShareOfTracesMayBeInTheFile(t *testing.T) {
	file := t.TempDir() + "/tarry.yaml"
	require.NoError(t, os.WriteFile(file, []byte("trace-sample: 0.25\notlp-endpoint: https://collector.example/base/\n"), 0o600))
	c, err := parseServerConfig([]string{"--config", file}, noEnv)
	require.NoError(t, err)
	require.Equal(t, 0.25, *c.TraceSample)
	require.Equal(t, "https://collector.example/base/", c.OTLPEndpoint)
}
