package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

func TestANamespaceOverHTTP(t *testing.T) {
	r := newRig(t)
	put := func(body, query string) map[string]any {
		w := r.do("PUT", "/v1/namespaces/billing"+query, body)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		return decoded(t, w)
	}
	first := put(`{"topic_prefix":"billing.","id_prefix":"b-","description":"d","quotas":{"jobs":1,"bytes":100,"topics":2,"rate":0.5}}`, "?if_revision=0")
	require.Equal(t, false, first["existing"])
	again := put(`{"topic_prefix":"billing.","id_prefix":"b-","description":"d","quotas":{"jobs":1,"bytes":100,"topics":2,"rate":0.5}}`, "?if_revision=0")
	require.Equal(t, true, again["existing"], "a request may be repeated")
	require.Equal(t, first["revision"], again["revision"])

	r.ok("/v1/jobs", `{"topic":"billing.a","id":"b-1","body":"12345"}`)
	shown := decoded(t, r.do("GET", "/v1/namespaces/billing", ""))
	require.Equal(t, map[string]any{"jobs": 1.0, "bytes": 5.0, "topics": 1.0}, shown["use"])
	require.Equal(t, map[string]any{"jobs": 1.0, "bytes": 100.0, "topics": 2.0, "rate": 0.5}, shown["quotas"])

	over := r.post("/v1/jobs", `{"topic":"billing.a","body":""}`)
	refused(t, over, http.StatusTooManyRequests, job.CodeOverQuota, `its quota, jobs, is 1`)
	require.Equal(t, "not_applied", decoded(t, over)["outcome"])
	refused(t, r.post("/v1/jobs", `{"topic":"billing.a","id":"x","body":""}`), http.StatusBadRequest, job.CodeInvalid, `begin with "b-"`)

	refused(t, r.do("PUT", "/v1/namespaces/billing?if_revision=0", `{"topic_prefix":"billing."}`), http.StatusPreconditionFailed, job.CodeConditionFailed, `namespace "billing" exists already`)

	put(`{"topic_prefix":"billing."}`, "")
	require.Equal(t, map[string]any{}, decoded(t, r.do("GET", "/v1/namespaces/billing", ""))["quotas"], "a put replaces all")
	require.Equal(t, http.StatusOK, r.do("PUT", "/v1/namespaces/mail", `{"topic_prefix":"mail."}`).Code)
	list := decoded(t, r.do("GET", "/v1/namespaces", ""))["namespaces"].([]any)
	require.Len(t, list, 2)
	require.Equal(t, "billing", list[0].(map[string]any)["name"])
	require.Equal(t, http.StatusPreconditionFailed, r.do("DELETE", "/v1/namespaces/mail?if_revision=1", "").Code)
	require.Equal(t, http.StatusOK, r.do("DELETE", "/v1/namespaces/mail", "").Code)
	require.Equal(t, http.StatusNotFound, r.do("GET", "/v1/namespaces/mail", "").Code)
	require.Equal(t, http.StatusNotFound, r.do("DELETE", "/v1/namespaces/mail", "").Code)
}

func TestWrongNamespacesAreRefused(t *testing.T) {
	r := newRig(t)
	require.Equal(t, http.StatusOK, r.do("PUT", "/v1/namespaces/mail", `{"topic_prefix":"mail."}`).Code)
	for body, field := range map[string]string{
		`{}`: "topic_prefix", `{"topic_prefix":"a.*"}`: "topic_prefix", `{"topic_prefix":"mail.x"}`: "topic_prefix",
		`{"topic_prefix":"a.","quotas":{"jobs":-1}}`: "quotas.jobs", `{"topic_prefix":"a.","quotas":{"rate":0}}`: "quotas.rate", `{"topic_prefix":"a.","quotas":{"rate":0.0004}}`: "quotas.rate",
		`{"topic_prefix":"a.","quotas":{"rate":1000001}}`: "quotas.rate", `{"topic_prefix":"a.","quotas":{"jobs":9007199254740993}}`: "quotas.jobs",
	} {
		w := r.do("PUT", "/v1/namespaces/billing", body)
		require.Equal(t, http.StatusBadRequest, w.Code, body)
		require.Equal(t, field, decoded(t, w)["field"], body)
	}
	require.Equal(t, http.StatusBadRequest, r.do("PUT", "/v1/namespaces/UPPER", `{"topic_prefix":"a."}`).Code)
}

// A tenant sees its own namespace and no other, and changes none.
func TestATenantSeesItsOwnNamespace(t *testing.T) {
	r := newClosedRig(t)
	for _, name := range []string{"billing", "mail"} {
		require.Equal(t, http.StatusOK, r.with(r.root, "PUT", "/v1/namespaces/"+name, `{"topic_prefix":"`+name+`."}`).Code)
	}
	tenant := r.make("billing", `{"topics":["billing.*"],"verbs":["add","consume","read","manage"]}`)
	watcher := r.make("watcher", `{"topics":["*"],"verbs":["observe"]}`)
	for _, mode := range []string{"report", "enforce"} {
		r.mode(mode)
		require.Equal(t, http.StatusForbidden, r.with(tenant, "PUT", "/v1/namespaces/billing", `{"topic_prefix":"billing."}`).Code, mode)
		require.Equal(t, http.StatusForbidden, r.with(tenant, "DELETE", "/v1/namespaces/billing", "").Code, mode)
		require.Equal(t, http.StatusUnauthorized, r.with("", "DELETE", "/v1/namespaces/billing", "").Code, mode)
		require.Equal(t, http.StatusOK, r.with(tenant, "GET", "/v1/namespaces/billing", "").Code)
	}
	require.Equal(t, http.StatusNotFound, r.with(tenant, "GET", "/v1/namespaces/mail", "").Code)
	names := func(token string) (names []string) {
		for _, n := range decoded(t, r.with(token, "GET", "/v1/namespaces", ""))["namespaces"].([]any) {
			names = append(names, n.(map[string]any)["name"].(string))
		}
		return names
	}
	require.Equal(t, []string{"billing"}, names(tenant))
	require.Equal(t, []string{"billing", "mail"}, names(watcher))
	require.Equal(t, http.StatusOK, r.with(r.root, "DELETE", "/v1/namespaces/mail", "").Code)
}
