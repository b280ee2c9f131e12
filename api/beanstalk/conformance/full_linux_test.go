package conformance

import (
	"testing"

	"tarry/internal/smalldisk"
)

func TestARealBeanstalkdOnAFullDisk(t *testing.T) {
	disk := smalldisk.New(t, 8)
	r := StartReal(t, Settings{Dir: disk.Dir})
	RunFullDisk(t, r.Addr(), func() { disk.Fill(0) }, disk.Free)
}
