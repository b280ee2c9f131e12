package api

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// A script whose variable is not set must not delete without the condition that
// it meant to give.
func TestEmptyQueryParametersAreRefused(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"mail","id":"a","body":1,"headers":{"k":""}}`)
	r.settings("PUT", "", `{"max_pending":5}`)
	for path, field := range map[string]string{
		"DELETE /v1/jobs/a?if_revision=":               "if_revision",
		"DELETE /v1/jobs/a?if_state=":                  "if_state",
		"DELETE /v1/jobs/a?token":                      "token",
		"DELETE /v1/topics/mail/settings?if_revision=": "if_revision",
		"GET /v1/topics?max=":                          "max",
		"GET /v1/topics/mail/jobs?state=":              "state",
	} {
		method, path, _ := strings.Cut(path, " ")
		refused(t, r.do(method, path, ""), 400, job.CodeInvalid, `query parameter "`+field+`" is empty`)
	}
	require.Equal(t, 200, r.do("GET", "/v1/jobs/a", "").Code)
	require.Equal(t, map[string]any{"max_pending": 5.0}, r.settings("GET", "", "")["settings"])
	require.Equal(t, [][]string{{"a"}}, r.pages("/v1/topics/mail/jobs?header.k="), "the value of a header may be empty")
	require.Equal(t, [][]string{{"a"}}, r.pages("/v1/topics/mail/jobs?cursor="), "this is the first page")
	require.Equal(t, 200, r.do("GET", "/v1/topics?after=", "").Code)
}
