package fsm

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
	"tarry/job"
)

// fixedConstants are the constants that Apply depends on, besides the limits of the
// cluster version. They must never change: a release with another value would reach
// another state by the same log. To change one, make it a function of the version.
var fixedConstants = map[string]struct{ is, was any }{
	"job.UrgentBelow":     {job.UrgentBelow, 1024},
	"job.NeverMS":         {job.NeverMS, 1<<63 - 1},
	"job.MaxReserve":      {job.MaxReserve, 1000},          // expired jobs that one Reserve passes over
	"job.MaxReserveBytes": {job.MaxReserveBytes, 16 << 20}, // bodies that one command reads
	"job.MaxHistory":      {job.MaxHistory, 32},
	"job.MaxHistoryText":  {job.MaxHistoryText, 256},
	"job.FirstVersion":    {job.FirstVersion, 1},
	"job.MaxInstantMS":    {job.MaxInstantMS, 253402300799999},
	"retentionStepMS":     {retentionStepMS, 1000},
	"topicKeepMS":         {topicKeepMS, 3_600_000},
	"job.DeadReasonBytes": {job.DeadReasonBytes, 200},
	"token":               {record.Token, 1_000_000},
	"walkShare":           {walkShare, 4},
	"headerValueMax":      {record.HeaderValueMax, 64},
	"headerHashLen":       {record.HeaderHashLen, 16},
	"duePeriod":           {record.DuePeriod, 1440},
	"maxAheadMS":          {maxAheadMS, 100},
	"maxPending":          {maxPending, 64},
	"dueRecent":           {record.DueRecent, 32},
	"dueGathered":         {dueGathered, 16_384},
	"dueSlots":            {dueSlots, 256},
	// Formats that nodes of two releases read.
	"formatVersion":    {record.FormatVersion, 10},
	"specVersion":      {record.SpecVersion, 3},
	"statusVersion":    {record.StatusVersion, 4},
	"topicVersion":     {record.TopicVersion, 3},
	"settingsVersion":  {record.SettingsVersion, 1},
	"scheduleVersion":  {record.ScheduleVersion, 1},
	"digestVersion":    {check.DigestVersion, 9},
	"namespaceVersion": {record.NamespaceVersion, 1},

	"overrun":       {overrun, "time to run exceeded"},
	"expiredReason": {expiredReason, "expired"},
}

func TestWhatApplyDependsOnNeverChanges(t *testing.T) {
	for name, m := range fixedConstants {
		require.EqualValues(t, m.was, m.is, name)
	}
}

// Operations are checked by the limits of the cluster version alone: the code that applies
// them uses no limit of the binary.
func TestOperationsAreCheckedByTheVersionsLimits(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	below, err := filepath.Glob("internal/*/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, below)
	files = append(files, below...)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := gotoken.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := s.X.(*ast.Ident)
			if !ok || of.Name != "job" {
				return true
			}
			name := "job." + s.Sel.Name
			if _, listed := fixedConstants[name]; !listed && isLimit(s.Sel.Name) {
				t.Errorf("%s: %s: use x.limits(), which go with the cluster version", set.Position(n.Pos()), name)
			}
			return true
		})
	}
}

// isLimit reports whether a name of package job is a limit of the binary, or a check by
// one.
func isLimit(name string) bool {
	if name == "CheckOp" {
		return false // it takes the limits
	}
	for _, prefix := range []string{"Max", "Min", "Hard", "Default", "Past", "Urgent", "Never", "Check"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
