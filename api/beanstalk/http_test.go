package beanstalk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHTTPIsDistinguishedFromCommands(t *testing.T) {
	const undecided, no, yes = "", "no", "yes"
	for first, want := range map[string]string{
		"": undecided, "P": undecided, "POST": undecided, "POST ": undecided,
		"POST /": yes, "GET / HTTP/1.1\r\n": yes, "OPTIONS * HTTP/1.1": yes, "GET http://a/": yes, "PRI * HTTP/2.0\r\n": yes, "PROPFIND /": yes,
		"put 0 0 1 1\r\n": no, "PUT 0 0 1 1\r\n": no, "QUIT\r\n": no, "STATS\r\n": no, " /": no, "\r\n": no, "/": no, "G\x00": no,
		"AAAAAAAAAAAAAAAAAAAAAAAA /": no, "AAAAAAAAAAAAAAAA": no, "AAAAAAAAAAAAAAA": undecided,
	} {
		http, decided := startsHTTP([]byte(first))
		got := undecided
		if decided {
			got = map[bool]string{false: no, true: yes}[http]
		}
		require.Equal(t, want, got, "%q", first)
	}
}
