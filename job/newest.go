package job

import "tarry/job/jobpb"

// Newest returns the newest limits that this release knows. The borders judge by them:
// what the cluster's version does not allow yet, the state machine refuses.
func Newest() *Limits { return limitsOf[MaxVersion] }

// These are checks of Limits with those.

func CheckTopic(field, topic string) error       { return Newest().CheckTopic(field, topic) }
func CheckID(field, id string) error             { return Newest().CheckID(field, id) }
func CheckRefID(field, id string) error          { return Newest().CheckRefID(field, id) }
func CheckConsumer(field, name string) error     { return Newest().CheckConsumer(field, name) }
func CheckReserve(op *jobpb.Reserve) error       { return Newest().CheckReserve(op) }
func CheckBackoff(b *jobpb.Backoff) error        { return Newest().CheckBackoff(b) }
func CheckFilter(f *jobpb.Filter) error          { return Newest().CheckFilter(f) }
func CheckSettings(s *jobpb.TopicSettings) error { return Newest().CheckSettings(s) }
func CheckScheduleName(field, name string) error { return Newest().CheckScheduleName(field, name) }
func CheckTimes(s *jobpb.Schedule) error         { return Newest().CheckTimes(s) }
func CheckRunKey(field, key string) error        { return Newest().CheckRunKey(field, key) }
