package ui

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// namespacesIn returns the text of the rows of the table of namespaces; nil: there is none.
func namespacesIn(r *rig, at string) (rows []string) {
	r.t.Helper()
	for _, table := range all(r.open(at), "table") {
		if caption := all(table, "caption"); len(caption) == 0 || !strings.HasPrefix(words(caption[0]), "Namespaces") {
			continue
		}
		for _, row := range all(table, "tr")[1:] {
			rows = append(rows, words(row))
		}
	}
	return rows
}

func TestTheNamespacesAreShownWithTheirQuotas(t *testing.T) {
	r := newRig(t)
	require.Nil(t, namespacesIn(r, Root))
	r.api(http.MethodPut, "/v1/namespaces/billing", `{"topic_prefix":"billing.","quotas":{"jobs":2,"bytes":2000000,"topics":1,"rate":0.5}}`)
	r.api(http.MethodPut, "/v1/namespaces/shop", `{"topic_prefix":"shop."}`)
	r.add(`{"topic":"billing.invoices","body":"12345"}`)
	require.Equal(t, []string{"billing billing.* 1 of 2 5 bytes of 1.91 MiB 1 of 1 at most 0.5", "shop shop.* 0 0 bytes 0 –"}, namespacesIn(r, Root))
	require.Len(t, namespacesIn(r, "/ui/?prefix=sh"), 1)
	require.Len(t, namespacesIn(r, "/ui/?prefix=shop.a&sort=ready"), 1)
	require.Nil(t, namespacesIn(r, "/ui/?after=a"), "they are on the first page")
	full := 0
	for _, cell := range all(r.open(Root), "td") {
		if attribute(cell, "class") == "n bad" {
			full++
			require.Equal(t, "1 of 1", words(cell))
		}
	}
	require.Equal(t, 1, full)
	wellFormed(t, Root, r.get(Root))
	for i := range maxNamespaces {
		r.api(http.MethodPut, "/v1/namespaces/t"+strconv.Itoa(i), `{"topic_prefix":"t`+strconv.Itoa(i)+`."}`)
	}
	require.Len(t, namespacesIn(r, Root), maxNamespaces)
	require.Contains(t, r.get(Root).Body.String(), "2 more are not shown")
}

// A tenant learns nothing of the others.
func TestOnlyTheNamespacesAreShownThatTheTokenMayRead(t *testing.T) {
	r, root := enforced(t)
	r.call(root, http.MethodPut, "/v1/namespaces/billing", `{"topic_prefix":"billing."}`)
	r.call(root, http.MethodPut, "/v1/namespaces/shop", `{"topic_prefix":"shop."}`)
	for rules, want := range map[string]int{
		`[{"topics":["shop.*"],"verbs":["read"]}]`:                                    1,
		`[{"topics":["mail"],"verbs":["read"]}]`:                                      0,
		`[{"topics":["*"],"verbs":["read","observe"]}]`:                               2,
		`[{"topics":["mail"],"verbs":["read"]},{"topics":["*"],"verbs":["observe"]}]`: 2,
	} {
		clear(r.cookies)
		token := r.token(root, "looker", rules)
		form := formIn(t, parsed(t, r.get(Root)), signInPath)
		form.Set(tokenInput, token)
		require.Equal(t, http.StatusSeeOther, r.send(formOf(signInPath, form)).Code)
		require.Len(t, namespacesIn(r, Root), want, rules)
		r.call(root, http.MethodDelete, "/v1/tokens/looker", "")
	}
}
