package gossip

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesOfMemberlistGetTheLevelThatAnOperatorNeeds(t *testing.T) {
	for line, want := range map[string]string{
		"[ERR] memberlist: Failed to send gossip to 10.0.0.1:1: no route":                                                           "level=WARN msg=memberlist text=\"Failed to send gossip",
		"[ERR] memberlist: Failed to send gossip to 10.0.0.1:1: write udp 10.0.0.2:1->10.0.0.1:1: use of closed network connection": "level=DEBUG msg=memberlist text=\"Failed to send gossip",
		"[WARN] memberlist: Refuting a suspect message (from: n1)":                                                                  "level=WARN msg=memberlist text=\"Refuting",
		"[WARN] memberlist: Got ping for unexpected node 'n1.ab@1' from=a:1":                                                        "level=DEBUG msg=memberlist text=\"Got ping",
		"[ERR] memberlist: Failed fallback TCP ping: EOF":                                                                           "level=DEBUG msg=memberlist text=\"Failed fallback",
		"[ERR] memberlist: Failed fallback TCP ping: timeout 1s: read tcp a->b: i/o timeout":                                        "level=WARN msg=memberlist text=\"Failed fallback",
		"[ERR] memberlist: Failed fallback TCP ping: dial tcp 10.0.0.1:1: connect: no route":                                        "level=WARN msg=memberlist text=\"Failed fallback",
		"[DEBUG] memberlist: Initiating push/pull sync with: n2":                                                                    "level=DEBUG msg=memberlist text=\"Initiating",
		"a line without a level": "level=DEBUG msg=memberlist text=\"a line",
	} {
		var out strings.Builder
		stdLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))).Print(line)
		require.Contains(t, out.String(), want)
	}
}
