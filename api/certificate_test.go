package api

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/access"
	"tarry/api/httpx"
	"tarry/internal/certs"
	"tarry/internal/certs/certstest"
	"tarry/job"
)

// certified makes a call over a connection whose client certificate names a token.
func (r *closedRig) certified(a *certstest.Authority, id, token, method, path, body string) *httptest.ResponseRecorder {
	r.t.Helper()
	return r.certifiedPage(a, id, token, method, path, body, nil)
}

// certifiedPage is certified for a page of a browser, which adds a header.
func (r *closedRig) certifiedPage(a *certstest.Authority, id, token, method, path, body string, header map[string]string) *httptest.ResponseRecorder {
	r.t.Helper()
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	if id != "" {
		leaf, _, err := a.Authority.Issue(certs.RoleToken, id, nil, time.Now(), time.Now().Add(time.Hour))
		require.NoError(r.t, err)
		q.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf, a.Cert}}}
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range header {
		q.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	return w
}

// A browser adds its certificate, and a password that it keeps, to the requests of any page.
func TestPagesOfAllowedOriginsDoNotActForWhoSeesThem(t *testing.T) {
	r, a := newClosedRig(t, func(o *Options) {
		var err error
		o.Origins, err = httpx.ParseOrigins("*")
		require.NoError(t, err)
	}), certstest.New(t, "orders")
	require.Equal(t, 200, r.with(r.root, "PUT", "/v1/auth", `{"mode":"enforce"}`).Code)
	const job1 = `{"topic":"mail","body":1}`
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("root:"+r.root))
	for _, page := range []map[string]string{
		{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "same-site"},
	} {
		refused(t, r.certifiedPage(a, "root", "", "POST", "/v1/tokens/root/rotate", `{"overlap":0}`, page), 401, access.CodeUnauthorized, "token")
		refused(t, r.certifiedPage(a, "root", "", "POST", "/v1/jobs", job1, page), 401, access.CodeUnauthorized, "token")
		kept := maps.Clone(page)
		kept["Authorization"] = basic
		refused(t, r.certifiedPage(a, "", "", "POST", "/v1/jobs", job1, kept), 401, access.CodeUnauthorized, "token")
	}
	own := map[string]string{"Origin": "https://example.com", "Sec-Fetch-Site": "same-origin"}
	require.Equal(t, 201, r.certifiedPage(a, "root", "", "POST", "/v1/jobs", job1, own).Code)
	require.Equal(t, 201, r.certifiedPage(a, "", "", "POST", "/v1/jobs", job1, map[string]string{"Authorization": basic}).Code)
}

func TestAClientCertificateActsWithItsToken(t *testing.T) {
	r, a := newClosedRig(t), certstest.New(t, "orders")
	shop := r.make("shop", `{"topics":["mail"],"verbs":["add","consume"]}`)
	const job1 = `{"topic":"mail","body":1}`
	who := decoded(t, r.certified(a, "root", "", "GET", "/v1/whoami", ""))
	require.Equal(t, "root", who["id"], "also while nothing is refused")
	require.Equal(t, 200, r.certified(a, "root", "", "PUT", "/v1/auth", `{"mode":"enforce"}`).Code)
	require.Equal(t, 201, r.certified(a, "shop", "", "POST", "/v1/jobs", job1).Code)
	refused(t, r.certified(a, "shop", "", "POST", "/v1/jobs", `{"topic":"sms","body":1}`), 403, job.CodeForbidden, "with this token")
	refused(t, r.certified(a, "shop", shop, "POST", "/v1/jobs", job1), 400, job.CodeInvalid, "send one of them")
	refused(t, r.certified(a, "nobody", "", "POST", "/v1/jobs", job1), 401, access.CodeUnauthorized, "token")
	require.Equal(t, http.StatusCreated, r.with(r.root, "POST", "/v1/tokens/shop/rotate", `{"overlap":0}`).Code)
	require.Equal(t, 201, r.certified(a, "shop", "", "POST", "/v1/jobs", job1).Code, "it stands for the token and not for the text")

	ended := make(chan *httptest.ResponseRecorder, 1)
	go func() { ended <- r.certified(a, "shop", "", "POST", "/v1/stream", `{"topics":["mail"],"credit":9}`) }()
	require.Eventually(t, func() bool { return r.queue.Waiting() == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, 200, r.with(r.root, "DELETE", "/v1/tokens/shop", "").Code)
	select {
	case w := <-ended:
		require.Contains(t, w.Body.String(), `"code":"forbidden"`)
	case <-time.After(time.Minute):
		t.Fatal("the stream goes on")
	}
	refused(t, r.certified(a, "shop", "", "POST", "/v1/jobs", job1), 401, access.CodeUnauthorized, "token")
}
