//go:build !chaos || !next

package fsm

import "tarry/job/jobpb"

// A build that stands for the next release replaces these: see version_next.go.

const nextStatusVersion = statusVersion

// migrationTo returns the migration of records to a cluster version; nil: the format is
// that of the previous version.
func migrationTo(uint32) *migration { return nil }

// statusFormat returns the format in which a cluster version writes a job's status.
func statusFormat(uint32) byte { return statusVersion }

type nextStatus struct{}

func (*nextStatus) append(b []byte, _ byte) []byte          { return b }
func (*nextStatus) decode(b []byte, _ byte) ([]byte, error) { return b, nil }
func (*nextStatus) update(*jobpb.Update)                    {}
func nextOperation(*jobpb.Op) *operation                    { return nil }
