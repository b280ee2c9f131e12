//go:build !linux

package ops

func clockSynced() (synced, known bool) { return false, false }

func mountOf(string) (kind string, options []string) { return "", nil }
