package job

import "fmt"

// LimitUse is how much of a limit of the whole cluster is in use.
type LimitUse struct {
	What       string // in the plural
	Used, Most int
}

// NearlyUsed is the share of a limit from which health warns of it.
const NearlyUsed = 0.8

// Share is 1 when nothing more is allowed.
func (u LimitUse) Share() float64 { return float64(u.Used) / float64(u.Most) }

// Reason is what health says of a limit that is nearly used up; empty: it is not.
func (u LimitUse) Reason() string {
	if u.Share() < NearlyUsed {
		return ""
	}
	return fmt.Sprintf("there are %d %s, and %d are the most: beyond that new ones are refused", u.Used, u.What, u.Most)
}
