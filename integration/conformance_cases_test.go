package integration

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// conformanceCase is one case of clients/conformance/cases.yaml.
type conformanceCase struct {
	name  string
	open  object
	steps []caseStep
}

// caseStep is one call and what is expected of it.
type caseStep struct {
	verb string
	args any
	stepOptions
}

// stepOptions are the members of a step beside its verb.
type stepOptions struct {
	Want         any               `json:"want"`
	Fail         object            `json:"fail"`
	Save         map[string]string `json:"save"`
	Within       float64           `json:"within"`
	Times        int               `json:"times"`
	KillLeaderAt int               `json:"kill_leader_at"`
	Background   bool              `json:"background"`
}

var optionNames = []string{"want", "fail", "save", "within", "times", "kill_leader_at", "background"}

func loadCases(t *testing.T, file string) []conformanceCase {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var raw any
	require.NoError(t, yaml.Unmarshal(text, &raw))
	var list struct {
		Cases []struct {
			Name  string   `json:"name"`
			Open  object   `json:"open"`
			Steps []object `json:"steps"`
		} `json:"cases"`
	}
	asJSON(t, raw, &list)
	require.NotEmpty(t, list.Cases)
	var cases []conformanceCase
	for _, c := range list.Cases {
		require.NotEmpty(t, c.Name)
		require.NotEmpty(t, c.Steps, c.Name)
		one := conformanceCase{name: c.Name, open: c.Open}
		for _, s := range c.Steps {
			one.steps = append(one.steps, parseStep(t, c.Name, s))
		}
		cases = append(cases, one)
	}
	return cases
}

func parseStep(t *testing.T, where string, s object) caseStep {
	var step caseStep
	options := object{}
	for _, name := range optionNames {
		if v, ok := s[name]; ok {
			options[name] = v
			delete(s, name)
		}
	}
	asJSON(t, options, &step.stepOptions)
	require.Len(t, s, 1, "%s: a step has one verb: %v", where, s)
	for verb, args := range s {
		step.verb, step.args = verb, args
	}
	require.False(t, step.Want != nil && step.Fail != nil, "%s: %s wants and fails", where, step.verb)
	return step
}

// asJSON puts in into out by way of JSON.
func asJSON(t *testing.T, in, out any) {
	t.Helper()
	data, err := json.Marshal(in)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, out), "%s", data)
}
