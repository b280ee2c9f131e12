package job

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAResultOfAnErrorHasItsCode(t *testing.T) {
	for _, err := range []*Error{
		NotApplied("no leader"), Unknown("no reply in time"), Errorf(CodeOverloaded, "full"), Errorf(CodeDiskLow, "the disk is low"),
		Errorf(CodeStandby, "it follows"), Errorf(CodeOverQuota, "too fast"), Errorf(CodeCrossSlot, "two slots"), Invalid("delay", "is negative"),
		Errorf(CodeInternal, "a defect"),
	} {
		got := ResultError(ErrorResult(err))
		require.Equal(t, err.Code, CodeOf(got))
		require.EqualError(t, got, err.Message)
		require.Equal(t, err.Field, got.(*Error).Field)
	}
	require.Equal(t, CodeInternal, CodeOf(ResultError(ErrorResult(Errorf("a_new_code", "of another release")))))
}
