package membership

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/membership/memberpb"
)

func TestStandIsComparedWithTheReceipt(t *testing.T) {
	for name, c := range map[string]struct {
		has  receipt
		now  Stand
		says string
	}{
		"nothing was told":              {receipt{}, Stand{}, ""},
		"all is there":                  {receipt{3, 90}, Stand{3, 90}, ""},
		"more is there":                 {receipt{3, 90}, Stand{3, 95}, ""},
		"only the term was told":        {receipt{3, 0}, Stand{3, 10}, ""},
		"a later leader took some back": {receipt{3, 90}, Stand{4, 70}, ""},
		"the log is older":              {receipt{3, 90}, Stand{3, 89}, "entry 90 of term 3"},
		"the votes are older":           {receipt{3, 90}, Stand{2, 95}, "term 3"},
		"everything is lost":            {receipt{3, 90}, Stand{}, "term 3"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.now.rolledBack(c.has)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestReceiptsOnlyGrow(t *testing.T) {
	var r receipts
	tell := func(term, index uint64) {
		r.merge([]*memberpb.Receipt{{ServerId: "a.1", Term: term, Index: index}, nil, {Term: 9}})
	}
	tell(2, 10)
	tell(2, 9)
	require.Equal(t, receipt{2, 10}, r.of("a.1"))
	tell(3, 0)
	tell(2, 11)
	require.Equal(t, receipt{3, 0}, r.of("a.1"))
	require.Empty(t, r.list(func(string) bool { return false }))
	require.Len(t, r.list(func(string) bool { return true }), 1, "only those with a name")
	for i := range 2 * maxReceipts {
		r.merge([]*memberpb.Receipt{{ServerId: string(rune('A' + i)), Term: 1}})
	}
	require.Len(t, r.known, maxReceipts)
}

// Several questions are answered at a time, and each brings receipts.
func TestAReceiptThatComesInMeanwhileBlamesNobody(t *testing.T) {
	var r receipts
	r.acknowledged("n1.a", receipt{term: 2, index: 2})
	last := uint64(2)
	stand := func() Stand {
		before := Stand{Term: 2, LastIndex: last}
		last = 3 // stored, acknowledged, and heard of before the answer is looked at
		r.acknowledged("n1.a", receipt{term: 2, index: 3})
		return before
	}
	require.NoError(t, r.check("n1.a", stand))
	last = 2
	require.Error(t, r.check("n1.a", func() Stand { return Stand{Term: 2, LastIndex: last} }), "it has lost entry 3")
}

// A receipt for more than a node has would end it.
func TestAStrangersReceiptsAreNotBelieved(t *testing.T) {
	w := newTown(t)
	n1, stranger := w.node("n1", 1), w.node("n2", 2)
	n1.start()
	stranger.start()
	w.leader()
	stranger.receipts.merge([]*memberpb.Receipt{{ServerId: n1.serverID(), Term: 1000, Index: 1}})
	_, err := n1.ask(t.Context(), stranger.serverID(), stranger.clusterAddr)
	require.NoError(t, err)
	term, _ := n1.ReceiptOf(n1.serverID())
	require.Less(t, term, uint64(1000))
}
