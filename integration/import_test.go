package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
	"tarry/job"
)

// What one cluster has is put into another that has just lost its leader, and exported there
// again: it is the same. A cluster that is not upgraded yet refuses it without a change.
func TestEverythingMovesToAnotherCluster(t *testing.T) {
	t.Parallel()
	from := startCluster(t, 1)
	queue, err := client.New(from.addrs())
	require.NoError(t, err)
	t.Cleanup(queue.Close)
	from.writeEverything(queue)
	for i := range 3 {
		_, err := queue.AddBatch(t.Context(), manyDelayed(i, 1000))
		require.NoError(t, err)
	}
	before := filepath.Join(t.TempDir(), "before.ndjson")
	from.tarry("export", "--all", "--out", before)

	to := newCluster(t, 3)
	for _, n := range to.Nodes() {
		n.Setenv("TARRY_HOLD_VERSION", "true")
	}
	to.start(to.Nodes()...)
	to.waitVersion(job.FirstVersion)
	target, err := client.New(to.addrs(), client.WithPatience(0))
	require.NoError(t, err)
	t.Cleanup(target.Close)
	_, err = target.ImportBatch(t.Context(), []client.ImportedJob{{ID: "a", Topic: "t", State: "ready", DueAt: time.Now(), TTR: client.Duration{Duration: time.Minute}, Body: client.Text("x")}})
	require.ErrorIs(t, err, client.CodeNotApplied)
	require.ErrorContains(t, err, "Op.import_job needs cluster version 2, and the cluster has version 1 until all of its nodes are upgraded")

	for _, n := range to.Nodes() {
		to.kill(n)
		n.Setenv("TARRY_HOLD_VERSION", "")
		to.start(n)
	}
	to.waitVersion(job.MaxVersion)
	to.killLeader()
	to.tarry("import", before, "--patience", "1m")
	require.Contains(t, to.tarry("import", before, "--json", "--patience", "1m"), `"imported":{"topics":0,"namespaces":0,"schedules":0,"jobs":0},"existing":{"topics":1,"namespaces":1,"schedules":1,"jobs":3003}`)
	after := filepath.Join(t.TempDir(), "after.ndjson")
	to.tarry("export", "--all", "--out", after, "--patience", "1m")
	require.ElementsMatch(t, linesOf(t, before)[1:], linesOf(t, after)[1:])
}

func manyDelayed(part, n int) []client.NewJob {
	jobs := make([]client.NewJob, n)
	for i := range jobs {
		id := fmt.Sprintf("many-%d-%d", part, i)
		jobs[i] = client.NewJob{ID: id, Topic: "many", Delay: time.Duration(1+i) * time.Hour, Body: client.Text(id)}
	}
	return jobs
}

func linesOf(t *testing.T, file string) []string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Split(string(text), "\n")
}
