package httpx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostNames(t *testing.T) {
	names := hostNames{"n1", "Queue.Example", "*.svc.local"}
	for host, allowed := range map[string]bool{
		"": true, "localhost": true, "LOCALHOST:7300": true, "localhost.": true, "127.0.0.1": true, "127.0.0.1:7300": true,
		"[::1]": true, "[::1]:7300": true, "[fe80::1]:7300": true, "192.0.2.7:80": true,
		"n1": true, "N1:7300": true, "n1.": true, "queue.example:1": true, "a.svc.local": true, "a.b.SVC.local:7300": true,

		"n2": false, "n1.example": false, "xn1": false, "svc.local": false, "xsvc.local": false, "evil.example:7300": false,
		"127.0.0.1.evil.example": false, "[fe80::1%evil]": false, "[fe80::1%evil.example]:7300": false, "localhost.evil.example": false, "notlocalhost": false, "::": true, "[": false, "a:b:c": false,
	} {
		require.Equal(t, allowed, names.allow(host), host)
	}
	require.True(t, hostNames{"*"}.allow("any.example"))
}

// A job's body that looks like such a response is returned unchanged.
func TestBodiesArePassedOn(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 400 Bad Request", `HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n`,
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}", "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\r\n",
	} {
		_, changed := serverError([]byte(text))
		require.False(t, changed, text)
	}
}
