package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRevokedTokensAreJudged(t *testing.T) {
	for _, c := range []struct {
		name  string
		finds int
		ops   []Op
	}{
		{"a call that began before the revocation was acknowledged", 0, []Op{
			{Kind: Grant, Credential: "w", Invoke: 0, Complete: 10},
			{Kind: Revoke, Credential: "w", Invoke: 20, Complete: 30},
			{Kind: Count, Credential: "w", Invoke: 29, Complete: 50},
			{Kind: Count, Credential: "w", Outcome: Fail, Code: unauthorized, Invoke: 25, Complete: 50},
		}},
		{"a call that was done after it", 1, []Op{
			{Kind: Grant, Credential: "w", Invoke: 0, Complete: 10},
			{Kind: Revoke, Credential: "w", Invoke: 20, Complete: 30},
			{Kind: Count, Credential: "w", Invoke: 31, Complete: 50},
		}},
		{"a revocation that may not have been done", 0, []Op{
			{Kind: Grant, Credential: "w", Invoke: 0, Complete: 10},
			{Kind: Revoke, Credential: "w", Outcome: Unknown, Invoke: 20, Complete: 30},
			{Kind: Count, Credential: "w", Invoke: 31, Complete: 50},
			{Kind: Count, Credential: "w", Outcome: Fail, Code: unauthorized, Invoke: 51, Complete: 60},
		}},
		{"a token that is not known yet", 1, []Op{
			{Kind: Grant, Credential: "w", Invoke: 0, Complete: 10},
			{Kind: Count, Credential: "w", Outcome: Fail, Code: unauthorized, Invoke: 11, Complete: 15},
			{Kind: Revoke, Credential: "w", Invoke: 20, Complete: 30},
		}},
		{"a node that cannot say", 0, []Op{
			{Kind: Grant, Credential: "w", Invoke: 0, Complete: 10},
			{Kind: Count, Credential: "w", Outcome: Fail, Code: "not_applied", Invoke: 11, Complete: 15},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.finds, Check(c.ops, Options{}).Found["access"])
		})
	}
}
