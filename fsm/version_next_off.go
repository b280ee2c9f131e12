//go:build !chaos || !next

package fsm

import "tarry/job/jobpb"

// migrationTo returns the migration of records to a cluster version; nil: the format is
// that of the previous version.
func migrationTo(uint32) *migration { return nil }

func nextOperation(*jobpb.Op) *operation { return nil }
