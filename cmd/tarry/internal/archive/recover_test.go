package archive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/recovery"
)

// What a recovery loses depends on who has acknowledged writes.
func TestARecoverySaysWhatMayBeLost(t *testing.T) {
	voter := func(id string) recovery.Member { return recovery.Member{ServerID: id, Voter: true} }
	for _, c := range []struct {
		members []recovery.Member
		says    string
	}{
		{[]recovery.Member{voter("n1.a")}, "Nothing is lost"},
		{[]recovery.Member{voter("n1.a"), {ServerID: "n2.b"}}, "Nothing is lost"},
		{[]recovery.Member{voter("n2.b"), {ServerID: "n1.a"}}, "after index 7 are lost"},
		{[]recovery.Member{voter("n2.b")}, "It was no voter"},
		{[]recovery.Member{voter("n1.a"), voter("n2.b"), voter("n3.c")}, "acknowledged by 2 of 3 voters"},
		{nil, "nobody can say"},
	} {
		require.Contains(t, mayBeLost(&recovery.Held{NodeID: "n1", ServerID: "n1.a", LastIndex: 7, Members: c.members}), c.says)
	}
}
