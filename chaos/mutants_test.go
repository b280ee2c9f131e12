package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// binary is a server with hooks, built once by TestMain.
var binary string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(filepath.Dir(binary))
		os.Exit(code)
	}))
}

// hooked builds the server for the first test that asks.
func hooked(t *testing.T) string {
	if binary == "" {
		dir, err := os.MkdirTemp("", "tarry-chaos-test-")
		require.NoError(t, err)
		binary = filepath.Join(dir, "tarry")
		build := exec.Command("go", "build", "-tags", "chaos", "-o", binary, "tarry/cmd/tarry")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return binary
}

// verdict is what a program reads of a run.
type verdict struct {
	Verdict    string
	Found      map[string]int
	Operations int
	Failovers  int
	Faults     map[string]int
	Open       []string
}

// chaosRun is the program on its command line.
func chaosRun(t *testing.T, args ...string) (int, verdict, string) {
	if testing.Short() {
		t.Skip("runs a cluster of processes; without -short it does")
	}
	var out, notes bytes.Buffer
	args = append([]string{"--json", "--binary", hooked(t), "--dir", t.TempDir(), "--network", "loopback"}, args...)
	code := command(t.Context(), args, &out, &notes)
	var v verdict
	require.NoError(t, json.Unmarshal(out.Bytes(), &v), "%s\n%s", &out, &notes)
	return code, v, out.String() + notes.String()
}

// The judge is worth as much as the defects it finds. skip-fsync is not here: no
// client sees it before power is lost.
func TestMutantsAreFound(t *testing.T) {
	for mutant, invariants := range map[string]string{
		"drop-add":         "I1",
		"deliver-early":    "I3",
		"deliver-late":     "overdue",
		"hand-out-twice":   "I4",
		"forget-delete":    "I5",
		"half-batch":       "batch",
		"forget-postpone":  "I3",
		"ignore-condition": "revision",
		"finish-unposted":  "I1",
		"forget-header":    "life",
		"drop-import":      "I1",
		"forget-attempts":  "import",
		"forget-quota":     "quota rate",
		"halve-quota":      "quota",
		"stale-read":       "I10",
		"forget-revoke":    "access",
		"any-authority":    "keys",
		"keep-key":         "keys",
	} {
		t.Run(mutant, func(t *testing.T) {
			duration, drain := "3s", "10s"
			args := []string{"--tokens"}
			switch mutant {
			case "any-authority", "keep-key":
				args = append(args, "--secure")
			case "deliver-late":
				drain = "60s" // in which the jobs are handed out
			case "forget-quota":
				duration = "8s" // a rate is judged when the cluster has settled
			}
			code, v, out := chaosRun(t, append(args, "--duration", duration, "--drain", drain, "--seed", "1", "--faults", "none", "--mutant", mutant)...)
			require.Equal(t, exitViolation, code, out)
			require.Equal(t, violation, v.Verdict)
			for _, invariant := range strings.Fields(invariants) {
				require.NotZero(t, v.Found[invariant], out)
			}
		})
	}
}

func TestSoundServerPasses(t *testing.T) {
	for _, faults := range []string{"none", "kill-leader"} {
		t.Run(faults, func(t *testing.T) {
			code, v, out := chaosRun(t, "--duration", "4s", "--seed", "1", "--faults", faults, "--tokens", "--secure")
			require.Equal(t, exitOK, code, out)
			require.Equal(t, noViolation, v.Verdict)
			require.NotZero(t, v.Operations)
			require.Equal(t, faults != "none", v.Faults[faults] > 0, out)
		})
	}
}

func TestCommandLineIsChecked(t *testing.T) {
	for _, args := range [][]string{
		{"--faults", "no-such-fault", "--binary", hooked(t), "--dir", t.TempDir()},
		{"--duration", "0s"},
		{"--network", "carrier-pigeon", "--binary", hooked(t), "--dir", t.TempDir()},
		{"--binary", "/no/such/binary", "--dir", t.TempDir()},
		{"check"},
		{"check", filepath.Join(t.TempDir(), "nothing")},
		{"surplus"},
	} {
		t.Run(fmt.Sprint(args[0]), func(t *testing.T) {
			var out, notes bytes.Buffer
			require.Equal(t, exitFailed, command(t.Context(), args, &out, &notes), "%s%s", &out, &notes)
			require.NotEmpty(t, notes.String())
		})
	}
}
