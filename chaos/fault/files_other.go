//go:build !linux

package fault

import "errors"

func fileLimit(...int) (int, error) {
	return 0, errors.New("the limit on open files is read on Linux only")
}
