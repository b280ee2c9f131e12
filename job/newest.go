package job

import "tarry/job/jobpb"

// The borders judge by the newest limits that this release knows: what the cluster's
// version does not allow yet, the state machine refuses. These are the checks of
// Limits (check.go and the files beside it) with those.

func newest() *Limits { return limitsOf[MaxVersion] }

func CheckTopic(field, topic string) error       { return newest().CheckTopic(field, topic) }
func CheckID(field, id string) error             { return newest().CheckID(field, id) }
func CheckRefID(field, id string) error          { return newest().CheckRefID(field, id) }
func CheckReason(field, reason string) error     { return newest().CheckReason(field, reason) }
func CheckConsumer(field, name string) error     { return newest().CheckConsumer(field, name) }
func CheckReserve(op *jobpb.Reserve) error       { return newest().CheckReserve(op) }
func CheckExtras(e *jobpb.Extras) error          { return newest().CheckExtras(e) }
func CheckBackoff(b *jobpb.Backoff) error        { return newest().CheckBackoff(b) }
func CheckFilter(f *jobpb.Filter) error          { return newest().CheckFilter(f) }
func CheckSettings(s *jobpb.TopicSettings) error { return newest().CheckSettings(s) }
func CheckScheduleName(field, name string) error { return newest().CheckScheduleName(field, name) }
func CheckSchedule(s *jobpb.Schedule) error      { return newest().CheckSchedule(s) }
func CheckTimes(s *jobpb.Schedule) error         { return newest().CheckTimes(s) }
func CheckRunKey(field, key string) error        { return newest().CheckRunKey(field, key) }
