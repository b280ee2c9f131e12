package job

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestDeadJobsAreGroupedByTheBeginningOfTheirReason(t *testing.T) {
	long := strings.Repeat("x", DeadReasonBytes)
	for _, c := range []struct{ name, reason, lastError, want string }{
		{"nothing", "", "", ""},
		{"reason", "timeout", "refused", "timeout"},
		{"last error", "", "refused", "refused"},
		{"as long as may be", long, "", long},
		{"longer", long + "y", "", long},
		{"rune at the limit", long[1:] + "ä", "", long[1:]},
		{"rune before the limit", long[2:] + "äö", "", long[2:] + "ä"},
		{"four bytes", long[3:] + "😀", "", long[3:]},
		{"not UTF-8", strings.Repeat("\x80", 300), "", strings.Repeat("\x80", DeadReasonBytes-utf8.UTFMax)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := DeadReason(c.reason, c.lastError)
			require.Equal(t, c.want, got)
			require.Equal(t, got, DeadReason(got, ""), "a group's reason is its own")
		})
	}
}
