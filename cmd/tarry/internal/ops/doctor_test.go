package ops

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/api/apitest"
	condition "tarry/cluster/report"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
	"tarry/internal/certs"
	"tarry/job"
)

// found returns the checks of a name.
func (c *checkup) found(name string) (list []check) {
	return slices.DeleteFunc(slices.Clone(c.list), func(one check) bool { return one.Check != name })
}

const someMetrics = `# HELP process_open_fds Open files.
process_open_fds 95
process_max_fds 100
tarry_log_write_seconds{shard="0"} 0.6
tarry_disk_low 1
tarry_disk_free_bytes 1.5e+08
tarry_disk_low_water_bytes 5e+08
tarry_certificate_expiry_seconds{port="cluster"} -5
tarry_certificate_expiry_seconds{port="http"} 90000
tarry_certificate_expiry_seconds{port="beanstalk"} 9e+06
`

func TestTheDoctorExaminesACluster(t *testing.T) {
	queue, operator := apitest.New(t), &apitest.Operator{}
	server := httptest.NewServer(api.New(api.Options{
		Queue: queue, Operator: operator, About: apitest.About(),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, someMetrics) }),
	}))
	t.Cleanup(server.Close)
	t.Setenv(cli.AddrEnv, server.Listener.Addr().String())
	s := &clitest.Shell{T: t, Root: opsRoot, Queue: queue, Operator: operator}
	operator.HTTP = map[string]string{"n1": os.Getenv(cli.AddrEnv), "n2": clitest.FreeAddr(t)}
	operator.Change = func(list []*condition.Member) []*condition.Member {
		for i := range list {
			list[i].Address = "127.0.0.1:1" // no name is looked up
		}
		return list
	}
	code, out, errs := s.Run("doctor")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "checks failed")
	for _, line := range []string{
		"warn  health: n3 is not alive: gossip has no sign of it",
		"fail  clock: off by more than 5 s: n1",
		"ok    ready of n1: it can serve clients",
		"warn  files of n1: 95 of 100 files are open",
		"fail  disk of n1: a synced write takes 600ms",
		"warn  space of n1: 143.1 MiB are free, below the mark of 476.8 MiB",
		"fail  certificate of n1: that of port cluster has ended",
		"warn  certificate of n1: that of port http ends in 1.0 days",
		"ok    certificate of n1: that of port beanstalk ends in 104 days",
		"fail  reply of n2: ",
		"fail  reply of n3: it is down",
		"ok    members: all that reply know the same leader",
	} {
		require.Contains(t, out, line)
	}
	require.Contains(t, out, "      renew it: tarry cert renew")
	require.Contains(t, s.JSON("doctor"), `"check":"health","status":"warn"`)

	operator.Err = job.Errorf(job.CodeInternal, "broken")
	code, out, _ = s.Run("doctor", "--patience", "0s")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, out, "fail  cluster: broken")
}

// Without a leader nobody can compare the clocks, which says nothing of them.
func TestTheDoctorBlamesNoClockThatItCouldNotAskFor(t *testing.T) {
	queue := apitest.New(t)
	node := func(o *apitest.Operator) http.Handler {
		return api.New(api.Options{Queue: queue, Operator: o, About: apitest.About()})
	}
	without := node(&apitest.Operator{Err: job.Errorf(job.CodeNotApplied, "there is no leader")})
	with := node(&apitest.Operator{Change: func([]*condition.Member) []*condition.Member { return nil }}) // no name is looked up
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/cluster/clock" {
			without.ServeHTTP(w, r)
			return
		}
		with.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv(cli.AddrEnv, server.Listener.Addr().String())
	s := &clitest.Shell{T: t, Root: opsRoot}
	_, out, _ := s.Run("doctor", "--patience", "0s")
	require.Contains(t, out, "warn  clock: the clocks were not compared: there is no leader")
	require.NotContains(t, out, "NTP")
}

func TestTheDoctorSaysThatThereIsNoLeader(t *testing.T) {
	for found, leaders := range map[string]map[string][]string{
		"all that reply know the same leader": {"n1": {"n1", "n2"}},
		"the nodes disagree":                  {"n1": {"n1"}, "": {"n2"}},
		"knows a leader, so nothing":          {"": {"n1", "n2"}},
	} {
		var c checkup
		c.agreement(leaders)
		require.Len(t, c.list, 1)
		require.Contains(t, c.list[0].Found, found)
		require.Equal(t, len(leaders["n1"]) == 2, c.list[0].Status == checkOK)
	}
}

// Where tokens are enforced a node does not show everybody who leads.
func TestALeaderThatIsNotShownIsNotMissing(t *testing.T) {
	require.True(t, namesLeader(cli.ReadyReply{Ready: true, Leader: "n1"}))
	require.True(t, namesLeader(cli.ReadyReply{Reasons: []string{"no leader is known to n1"}}))
	require.False(t, namesLeader(cli.ReadyReply{Ready: true}))
	require.False(t, namesLeader(cli.ReadyReply{}))
}

func TestTheDoctorExaminesAMachine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	dir := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "tarry.yaml")
	require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf("data-dir: %s\nhttp-addr: %s\ncluster-addr: %s\ngossip-addr: %s\nbeanstalk-addr: 'off'\njoin: 127.0.0.1:7302\n",
		dir, taken.Addr(), clitest.FreeAddr(t), clitest.FreeAddr(t))), 0o600))
	cfg, err := settingsHere("", file, func(string) (string, bool) { return "", false })
	require.NoError(t, err)

	var c checkup
	c.machine(t.Context(), cfg)
	require.Equal(t, []check{{Check: "directory", Status: checkOK, Found: dir + " does not exist yet; the node makes it"}}, c.found("directory"))
	require.NoDirExists(t, dir)
	ports := c.found("port")
	require.Len(t, ports, 3)
	require.Equal(t, checkFail, ports[0].Status)
	require.Contains(t, ports[0].Found, "is in use, and no node runs in "+dir)
	require.Equal(t, checkOK, ports[1].Status)
	require.NotEmpty(t, c.found("files"))
	require.NotEmpty(t, c.found("space"))
	require.NotEmpty(t, c.found("disk"), "synced writes were measured")

	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Chmod(dir, 0o755)) // whatever the umask is
	c = checkup{}
	c.machine(t.Context(), cfg)
	require.Contains(t, c.found("directory")[0].Found, "other users may look into")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "nothing stays behind")

	s := clitest.NewShellOf(t, opsRoot)
	code, _, errs := s.Run("doctor", "--config", file+"x")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "configuration file")
	code, out, _ := s.Run("doctor", "--data-dir", file)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, out, "is no directory")
	require.NotContains(t, out, "health", "the cluster is not asked")
}

func TestFileSystemsThatLoseData(t *testing.T) {
	for _, one := range []struct {
		kind    string
		options []string
		status  []string
	}{
		{"ext4", []string{"rw", "relatime"}, []string{checkOK}},
		{"xfs", []string{"rw", "nobarrier"}, []string{checkOK, checkFail}},
		{"tmpfs", []string{"rw"}, []string{checkFail}},
		{"nfs4", nil, []string{checkWarn}},
		{"overlay", nil, []string{checkWarn}},
		{"", nil, nil},
	} {
		var c checkup
		c.fileSystem(one.kind, one.options)
		var got []string
		for _, found := range c.list {
			got = append(got, found.Status)
		}
		require.Equal(t, one.status, got, one.kind)
	}
	for mean, want := range map[time.Duration]string{time.Millisecond: checkOK, 30 * time.Millisecond: checkWarn, time.Second: checkFail} {
		var c checkup
		c.syncTime("disk", "", mean)
		require.Equal(t, want, c.list[0].Status)
	}
	var c checkup
	c.certificateFiles("http", certs.Files{Cert: filepath.Join(t.TempDir(), "none"), Key: "none"})
	require.Equal(t, checkFail, c.list[0].Status)
	require.True(t, strings.Contains(c.list[0].Fix, "--http-tls-cert"))
}
