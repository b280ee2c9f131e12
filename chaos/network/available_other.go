//go:build !linux

package network

import "errors"

func canUnshare() error { return errors.New("network namespaces need Linux") }
