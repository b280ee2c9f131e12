package job

import "tarry/job/jobpb"

// Newest returns the newest limits of this release. APIs check by them; the state machine
// refuses what the cluster version does not allow yet.
func Newest() *Limits { return limitsOf[MaxVersion] }

// The functions below check by the newest limits.

func CheckTopic(field, topic string) error       { return Newest().CheckTopic(field, topic) }
func CheckID(field, id string) error             { return Newest().CheckID(field, id) }
func CheckRefID(field, id string) error          { return Newest().CheckRefID(field, id) }
func CheckConsumer(field, name string) error     { return Newest().CheckConsumer(field, name) }
func CheckBackoff(b *jobpb.Backoff) error        { return Newest().CheckBackoff(b) }
func CheckFilter(f *jobpb.Filter) error          { return Newest().CheckFilter(f) }
func CheckSettings(s *jobpb.TopicSettings) error { return Newest().CheckSettings(s) }
func CheckScheduleName(field, name string) error { return Newest().CheckScheduleName(field, name) }
func CheckTimes(s *jobpb.Schedule) error         { return Newest().CheckTimes(s) }
func CheckRunKey(field, key string) error        { return Newest().CheckRunKey(field, key) }
func CheckTokenID(field, id string) error        { return Newest().CheckTokenID(field, id) }
func CheckToken(t *jobpb.Token) error            { return Newest().CheckToken(t) }
func CheckAuthSettings(s *jobpb.AuthSettings) error {
	return Newest().CheckAuthSettings(s)
}
