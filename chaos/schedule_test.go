package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/chaos/fault"
)

func testFaults() []fault.Fault {
	run := func(context.Context, *fault.Env) error { return nil }
	return []fault.Fault{
		{Name: "a", Weight: 3, Overlaps: true, Run: run},
		{Name: "b", Weight: 2, Overlaps: true, Run: run},
		{Name: "c", Weight: 1, Run: run},
		{Name: "d", Weight: 1, Needs: fault.Namespaces, Run: run},
		{Name: "e", Run: run},
	}
}

// deal gives what n steps of a schedule are, as far as two can be compared.
func deal(s *schedule, n int) (rows []any, faults map[string]int, besides int) {
	faults = map[string]int{}
	for range n {
		st, _ := s.next()
		row := []any{st.pause}
		for i, f := range st.faults {
			faults[f.Name]++
			row = append(row, f.Name, s.random(st, i).Uint64())
		}
		besides += len(st.faults) - 1
		rows = append(rows, row)
	}
	return rows, faults, besides
}

func TestSeedRepeatsTheSchedule(t *testing.T) {
	chosen, _, err := pick(testFaults(), "", 0)
	require.NoError(t, err)
	first, faults, besides := deal(newSchedule(7, chosen), 100)
	again, _, _ := deal(newSchedule(7, chosen), 100)
	other, _, _ := deal(newSchedule(8, chosen), 100)
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
	require.NotZero(t, besides, "faults run beside each other now and then")
	require.Greater(t, faults["a"], faults["c"])
	require.NotZero(t, faults["c"])
}

func TestChoiceOfFaults(t *testing.T) {
	chosen, lacking, err := pick(testFaults(), "", 0)
	require.NoError(t, err)
	require.Equal(t, "a, b, c", list(chosen), "without those that have no weight")
	require.Equal(t, []string{"d (needs namespaces)"}, lacking)

	chosen, _, err = pick(testFaults(), "e,d", fault.Namespaces)
	require.NoError(t, err)
	require.Equal(t, "e, d", list(chosen))
	require.Equal(t, 1, chosen[0].Weight, "a fault that is named is injected")

	_, _, err = pick(testFaults(), "d", 0)
	require.ErrorContains(t, err, "needs namespaces")
	_, _, err = pick(testFaults(), "z", 0)
	require.ErrorContains(t, err, "a, b, c, d, e")
	chosen, _, err = pick(testFaults(), "none", 0)
	require.NoError(t, err)
	require.Empty(t, chosen)
}
