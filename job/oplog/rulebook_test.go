package oplog

import (
	"slices"

	"tarry/job"
	"tarry/job/jobpb"
)

// rulebook returns every operation with its rules.
func rulebook() []checked {
	return slices.Concat(jobRules(), topicRules(), scheduleRules(), leaderRules(), authRules(), namespaceRules())
}

func jobRules() []checked {
	ref := &jobpb.Ref{Id: "a"}
	add := func(op *jobpb.Op) *jobpb.Add { return op.GetAdd() }
	second := func(op *jobpb.Op) *jobpb.Add { return op.GetAtomicAdd().Adds[1] }
	jobs := &jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: &jobpb.AtomicAdd{Adds: []*jobpb.Add{{Topic: "t", TtrMs: 1}, goodAdd()}}}}
	then := &jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: &jobpb.AtomicAdd{Finish: &jobpb.Finish{Ref: ref}, Adds: []*jobpb.Add{{Id: "b", Topic: "t", TtrMs: 1}, goodAdd()}}}}
	whole := func(op *jobpb.Op, list string) checked {
		in := under(list + "[1].")
		rules := append(addRules(second, in), whenRules(second, in)...)
		return checked{op, append(rules,
			rule{func(op *jobpb.Op) { op.GetAtomicAdd().Adds = nil }, list, "has 0 items; it takes 1 to 1000"},
			rule{func(op *jobpb.Op) { op.GetAtomicAdd().Adds = make([]*jobpb.Add, job.MaxBatch+1) }, list, "has 1001 items"},
			rule{func(op *jobpb.Op) {
				op.GetAtomicAdd().Adds[0].Body, second(op).Body = make([]byte, job.MaxAtomicAddBytes), make([]byte, 1)
			}, list + "[1].body", list + "[1]: the bodies have more than 4194304 bytes together"},
			rule{func(op *jobpb.Op) { second(op).IfExists = jobpb.IfExists_IF_EXISTS_REPLACE }, list + "[1].if_exists", list + "[1]: if_exists must be conflict or keep"},
			rule{func(op *jobpb.Op) { op.GetAtomicAdd().Adds[0].Id = "a" }, list + "[1].id", "\"a\" is given twice"},
		)}
	}
	ended := whole(then, "then")
	ended.rules = append(ended.rules, refRules(func(op *jobpb.Op) { op.GetAtomicAdd().Finish.Ref = nil })...)
	return append([]checked{
		{&jobpb.Op{Kind: &jobpb.Op_Add{Add: goodAdd()}}, append(addRules(add, same), whenRules(add, same)...)},
		whole(jobs, "jobs"), ended, importRules(),
		{&jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: ref}}}, refRules(func(op *jobpb.Op) { op.GetFinish().Ref = &jobpb.Ref{Generation: 1} })},
		{&jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref}}}, refRules(func(op *jobpb.Op) { op.GetDelete().Ref = nil })},
		{&jobpb.Op{Kind: &jobpb.Op_Release{Release: &jobpb.Release{Ref: ref}}}, append(refRules(func(op *jobpb.Op) { op.GetRelease().Ref = nil }),
			rule{func(op *jobpb.Op) { op.GetRelease().DelayMs = -1 }, "delay", "is -0.001 s"},
			rule{func(op *jobpb.Op) { op.GetRelease().DelayMs = pastDelay }, "delay", "is 1000000000.001 s"},
			rule{func(op *jobpb.Op) { op.GetRelease().Reason = long(job.MaxReasonBytes + 1) }, "reason", "has 1001 bytes; the limit is 1000"},
			rule{func(op *jobpb.Op) { op.GetRelease().Reason = "\xff" }, "reason", "not valid UTF-8"},
		)},
		{&jobpb.Op{Kind: &jobpb.Op_Touch{Touch: &jobpb.Touch{Ref: ref}}}, append(refRules(func(op *jobpb.Op) { op.GetTouch().Ref = nil }),
			rule{func(op *jobpb.Op) { op.GetTouch().TtrMs = -1 }, "ttr", "is -0.001 s"},
			rule{func(op *jobpb.Op) { op.GetTouch().TtrMs = pastTTR }, "ttr", "is 315360000.001 s"},
		)},
		{&jobpb.Op{Kind: &jobpb.Op_Bury{Bury: &jobpb.Bury{Ref: ref}}}, append(refRules(func(op *jobpb.Op) { op.GetBury().Ref = nil }),
			rule{func(op *jobpb.Op) { op.GetBury().Reason = long(job.MaxReasonBytes + 1) }, "reason", "has 1001 bytes; the limit is 1000"},
			rule{func(op *jobpb.Op) { op.GetBury().Reason = "\xff" }, "reason", "not valid UTF-8"},
		)},
		{&jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: ref}}}, append(refRules(func(op *jobpb.Op) { op.GetKick().Ref = nil }),
			rule{func(op *jobpb.Op) { op.GetKick().ToTopic = "a\n" }, "to_topic", "control character"},
		)},
	}, reserveAndUpdateRules(ref)...)
}

func importRules() checked {
	set := func(f func(*jobpb.ImportJob)) func(*jobpb.Op) { return func(op *jobpb.Op) { f(op.GetImportJob()) } }
	good := goodAdd()
	good.DueMs = 1
	return checked{
		&jobpb.Op{Kind: &jobpb.Op_ImportJob{ImportJob: &jobpb.ImportJob{Add: good}}},
		append(addRules(func(op *jobpb.Op) *jobpb.Add { return op.GetImportJob().Add }, same),
			rule{set(func(i *jobpb.ImportJob) { i.Add = nil }), "job", "is missing"},
			rule{set(func(i *jobpb.ImportJob) { i.Add.Id = "$0-1" }), "id", "reserved for ids made by the server"},
			rule{set(func(i *jobpb.ImportJob) { i.Add.DueMs = 0 }), "due_at", "is missing"},
			rule{set(func(i *jobpb.ImportJob) { i.Add.DueMs = -1 }), "due_at", "before 1970"},
			rule{set(func(i *jobpb.ImportJob) { i.Add.IfExists = jobpb.IfExists_IF_EXISTS_KEEP }), "if_exists", "is not for an import"},
			rule{set(func(i *jobpb.ImportJob) { i.Add.Condition = &jobpb.Condition{} }), "if_revision", "are not for an import"},
			rule{set(func(i *jobpb.ImportJob) { i.Add.TopicTtr = true }), "ttr", "are its own"},
			rule{set(func(i *jobpb.ImportJob) { i.Add.TopicAttempts = true }), "ttr", "are its own"},
			rule{set(func(i *jobpb.ImportJob) { i.Add.MaxAttempts, i.Attempts = 3, 3 }), "attempts", "is 3 of 3"},
			rule{set(func(i *jobpb.ImportJob) { i.DiedMs = 1 }), "died_at", "is only for jobs with the state dead"},
			rule{set(func(i *jobpb.ImportJob) { i.Dead, i.DiedMs = true, -1 }), "died_at", "is -1"},
			rule{set(func(i *jobpb.ImportJob) { i.CreatedMs = job.MaxInstantMS + 1 }), "created_at", "must be between 0 and"},
			rule{set(func(i *jobpb.ImportJob) { i.DelayMs = -1 }), "delay", "is -0.001 s"},
			rule{set(func(i *jobpb.ImportJob) { i.DelayMs = pastDelay + job.MaxSpread.Milliseconds() }), "delay", "is 1000604800.001 s"},
			rule{set(func(i *jobpb.ImportJob) { i.Reason = long(job.MaxReasonBytes + 1) }), "reason", "has 1001 bytes"},
			rule{set(func(i *jobpb.ImportJob) { i.LastError = "\xff" }), "last_error", "is not valid UTF-8"},
		),
	}
}

func reserveAndUpdateRules(ref *jobpb.Ref) []checked {
	update := func(f func(*jobpb.Update)) func(*jobpb.Op) { return func(op *jobpb.Op) { f(op.GetUpdate()) } }
	rules := append(refRules(func(op *jobpb.Op) { op.GetUpdate().Ref = nil }),
		rule{update(func(u *jobpb.Update) { u.DelayMs, u.DueMs = new(int64(1)), new(int64(1)) }), "delay", "and due_at are both given"},
		rule{update(func(u *jobpb.Update) { u.DelayMs = new(int64(-1)) }), "delay", "is -0.001 s"},
		rule{update(func(u *jobpb.Update) { u.DelayMs = new(pastDelay) }), "delay", "is 1000000000.001 s"},
		rule{update(func(u *jobpb.Update) { u.DueMs = new(int64(0)) }), "due_at", "before 1970"},
		rule{update(func(u *jobpb.Update) { u.TtrMs = new(int64(0)) }), "ttr", "is 0 s"},
		rule{update(func(u *jobpb.Update) { u.TtrMs = new(pastTTR) }), "ttr", "is 315360000.001 s"},
		rule{update(func(u *jobpb.Update) { u.Body = make([]byte, job.HardMaxBodyBytes+1) }), "body", "bytes; the limit"},
		rule{update(func(u *jobpb.Update) { u.BodyKind = 2 }), "body_kind", "is 2"},
	)
	rules = append(rules, backoffRules(func(op *jobpb.Op) **jobpb.Backoff { return &op.GetUpdate().Backoff })...)
	rules = append(rules, headerRules(func(op *jobpb.Op) *[]*jobpb.Header {
		u := op.GetUpdate()
		if u.Headers == nil {
			u.Headers = &jobpb.Headers{}
		}
		return &u.Headers.List
	})...)
	return []checked{
		// An empty backoff removes the job's.
		{&jobpb.Op{Kind: &jobpb.Op_Update{Update: &jobpb.Update{Ref: ref, Backoff: &jobpb.Backoff{}}}}, rules},
		{&jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{Topics: []string{""}, Max: 1}}}, []rule{
			{func(op *jobpb.Op) { op.GetReserve().Topics = nil }, "topics", "has 0 names; it takes 1 to 1000"},
			{func(op *jobpb.Op) { op.GetReserve().Topics = make([]string, job.MaxReserveTopics+1) }, "topics", "has 1001 names"},
			{func(op *jobpb.Op) { op.GetReserve().Max = 0 }, "max", "is 0; it must be between 1 and 1000"},
			{func(op *jobpb.Op) { op.GetReserve().Max = job.MaxReserve + 1 }, "max", "is 1001"},
			{func(op *jobpb.Op) { op.GetReserve().TtrMs = -1 }, "ttr", "is -0.001 s"},
			{func(op *jobpb.Op) { op.GetReserve().TtrMs = pastTTR }, "ttr", "is 315360000.001 s"},
			{func(op *jobpb.Op) { op.GetReserve().MaxBytes = -1 }, "max_bytes", "is -1"},
			{func(op *jobpb.Op) { op.GetReserve().HoldMs = -1 }, "hold_ms", "is -1"},
			{func(op *jobpb.Op) { op.GetReserve().HoldMs = 1001 }, "hold_ms", "is 1001; it must be between 0 and 1000"},
			{func(op *jobpb.Op) { op.GetReserve().Consumer = long(job.MaxConsumerBytes + 1) }, "consumer", "has 65 bytes; the limit is 64"},
			{func(op *jobpb.Op) { op.GetReserve().Consumer = "a\n" }, "consumer", "control character"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: &jobpb.Ref{Seq: 1}}}}, append(refRules(func(op *jobpb.Op) { op.GetReserveJob().Ref = nil }),
			rule{func(op *jobpb.Op) { op.GetReserveJob().TtrMs = -1 }, "ttr", "is -0.001 s"},
			rule{func(op *jobpb.Op) { op.GetReserveJob().TtrMs = pastTTR }, "ttr", "is 315360000.001 s"},
			rule{func(op *jobpb.Op) { op.GetReserveJob().Consumer = "a\n" }, "consumer", "control character"},
		)},
	}
}

func topicRules() []checked {
	move := func(f func(*jobpb.MoveJobs)) func(*jobpb.Op) { return func(op *jobpb.Op) { f(op.GetMoveJobs()) } }
	pause := func(f func(*jobpb.PauseTopic)) func(*jobpb.Op) { return func(op *jobpb.Op) { f(op.GetPauseTopic()) } }
	to := rule{move(func(m *jobpb.MoveJobs) { m.To = "" }), "to", "missing or empty"}
	return []checked{
		{&jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Max: 1, Sweep: &jobpb.Sweep{Scan: 1}}}}, append(
			sweepRules(func(op *jobpb.Op) *jobpb.Sweep { return op.GetKickTopic().Sweep }),
			rule{func(op *jobpb.Op) { op.GetKickTopic().Max = 0 }, "max", "is 0; it must be between 1 and 10000"},
			rule{func(op *jobpb.Op) { op.GetKickTopic().Max = job.MaxKick + 1 }, "max", "is 10001"},
			rule{func(op *jobpb.Op) { op.GetKickTopic().ToTopic = "a\n" }, "to_topic", "control character"},
		)},
		{&jobpb.Op{Kind: &jobpb.Op_Purge{Purge: &jobpb.Purge{Max: 1, State: jobpb.State_STATE_DEAD, Sweep: &jobpb.Sweep{Scan: 1}}}}, append(
			sweepRules(func(op *jobpb.Op) *jobpb.Sweep { return op.GetPurge().Sweep }),
			rule{func(op *jobpb.Op) { op.GetPurge().Sweep = nil }, "sweep", "is missing"},
			rule{func(op *jobpb.Op) { op.GetPurge().State = jobpb.State_STATE_RESERVED }, "state", "is reserved; it must be delayed, ready or dead"},
			rule{func(op *jobpb.Op) { op.GetPurge().Max = 0 }, "max", "is 0"},
			rule{func(op *jobpb.Op) { op.GetPurge().Max = job.MaxKick + 1 }, "max", "is 10001"},
		)},
		{&jobpb.Op{Kind: &jobpb.Op_ReleaseTopic{ReleaseTopic: &jobpb.ReleaseTopic{Max: 1, Sweep: &jobpb.Sweep{Scan: 1}}}}, append(
			sweepRules(func(op *jobpb.Op) *jobpb.Sweep { return op.GetReleaseTopic().Sweep }),
			rule{func(op *jobpb.Op) { op.GetReleaseTopic().Sweep = nil }, "sweep", "is missing"},
			rule{func(op *jobpb.Op) { op.GetReleaseTopic().Max = 0 }, "max", "is 0"},
			rule{func(op *jobpb.Op) { op.GetReleaseTopic().Max = job.MaxKick + 1 }, "max", "is 10001"},
			rule{func(op *jobpb.Op) { op.GetReleaseTopic().Consumer = "a\n" }, "consumer", "control character"},
			rule{func(op *jobpb.Op) { op.GetReleaseTopic().Reason = long(job.MaxReasonBytes + 1) }, "reason", "has 1001 bytes"},
		)},
		{&jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Topic: "t", To: "u", Max: 1}}}, []rule{
			to,
			{move(func(m *jobpb.MoveJobs) { m.To = "t" }), "to", "the topic itself"},
			{move(func(m *jobpb.MoveJobs) { m.Max = 0 }), "max", "is 0"},
			{move(func(m *jobpb.MoveJobs) { m.Max = job.MaxKick + 1 }), "max", "is 10001"},
			{move(func(m *jobpb.MoveJobs) { m.States = []jobpb.State{jobpb.State_STATE_FINISHED} }), "states", "has 5"},
			{move(func(m *jobpb.MoveJobs) { m.States = []jobpb.State{0} }), "states", "has 0"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Ref: &jobpb.Ref{Id: "a"}, To: "u"}}},
			append(refRules(move(func(m *jobpb.MoveJobs) { m.Ref = &jobpb.Ref{} })), to)},
		{&jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{Topic: "t", Create: true}}}, []rule{
			{pause(func(p *jobpb.PauseTopic) { p.Topic = "" }), "topic", "missing or empty"},
			{pause(func(p *jobpb.PauseTopic) { p.PauseMs = -1 }), "for", "is -0.001 s"},
			{pause(func(p *jobpb.PauseTopic) { p.PauseMs = job.MaxPause.Milliseconds() + 1 }), "for", "between 0 and 4294967295 s"},
			{pause(func(p *jobpb.PauseTopic) { p.UntilMs = -1 }), "until", "before 1970"},
			{pause(func(p *jobpb.PauseTopic) { p.PauseMs, p.UntilMs = 1, 1 }), "for", "and until are both given; give one"},
			{pause(func(p *jobpb.PauseTopic) { p.PauseMs, p.Endless = 1, true }), "for", "without end"},
			{pause(func(p *jobpb.PauseTopic) { p.UntilMs, p.Endless = 1, true }), "for", "without end"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{}}}}, append(
			settingsRules(),
			rule{func(op *jobpb.Op) { op.GetSetTopic().Topic = "" }, "topic", "missing or empty"},
		)},
	}
}

func settingsRules() []rule {
	set := func(f func(*jobpb.TopicSettings)) func(*jobpb.Op) {
		return func(op *jobpb.Op) { f(op.GetSetTopic().Settings) }
	}
	push := func(f func(*jobpb.PushTarget)) func(*jobpb.Op) {
		return set(func(s *jobpb.TopicSettings) {
			s.Push = &jobpb.PushTarget{Url: "http://h", Secret: long(job.MinPushSecretBytes)}
			f(s.Push)
		})
	}
	return append(backoffRules(func(op *jobpb.Op) **jobpb.Backoff { return &op.GetSetTopic().Settings.Backoff }),
		rule{set(func(s *jobpb.TopicSettings) { s.TtrMs = new(int64(0)) }), "ttr", "is 0 s"},
		rule{set(func(s *jobpb.TopicSettings) { s.TtrMs = new(pastTTR) }), "ttr", "315360000 s"},
		rule{set(func(s *jobpb.TopicSettings) { s.ExpireMs = -1 }), "expire", "is -0.001 s"},
		rule{set(func(s *jobpb.TopicSettings) { s.ExpireMs = pastDelay }), "expire", "1000000000 s"},
		rule{set(func(s *jobpb.TopicSettings) { s.Expiry = 2 }), "expiry", "is 2"},
		rule{set(func(s *jobpb.TopicSettings) { s.LateFinish = 2 }), "late_finish", "is 2"},
		rule{set(func(s *jobpb.TopicSettings) { s.SpreadMs = -1 }), "spread", "is -0.001 s"},
		rule{set(func(s *jobpb.TopicSettings) { s.SpreadMs = job.MaxSpread.Milliseconds() + 1 }), "spread", "604800 s"},
		rule{set(func(s *jobpb.TopicSettings) { s.RetainMs = -1 }), "retain", "is -0.001 s"},
		rule{set(func(s *jobpb.TopicSettings) { s.RetainMs = job.MaxRetention.Milliseconds() + 1 }), "retain", "31536000 s"},
		rule{set(func(s *jobpb.TopicSettings) { s.MaxReserved = new(uint64(0)) }), "max_reserved", "at least 1"},
		rule{set(func(s *jobpb.TopicSettings) { s.RateMilli = job.MaxRateMilli + 1 }), "rate", "between 0.001 and 1000000"},
		rule{set(func(s *jobpb.TopicSettings) { s.RateMilli, s.Burst = 1, job.MaxBurst+1 }), "burst", "between 1 and 1000000"},
		rule{set(func(s *jobpb.TopicSettings) { s.Burst = 1 }), "burst", "there is no rate"},
		rule{push(func(p *jobpb.PushTarget) { p.Url = "" }), "push.url", "has 0 bytes"},
		rule{push(func(p *jobpb.PushTarget) { p.Url = long(job.MaxPushURLBytes + 1) }), "push.url", "has 2001 bytes"},
		rule{push(func(p *jobpb.PushTarget) { p.Url = "\xff" }), "push.url", "UTF-8"},
		rule{push(func(p *jobpb.PushTarget) { p.Secret = long(job.MinPushSecretBytes - 1) }), "push.secret", "has 15 bytes"},
		rule{push(func(p *jobpb.PushTarget) { p.Secret = long(job.MaxPushSecretBytes + 1) }), "push.secret", "has 257 bytes"},
		rule{push(func(p *jobpb.PushTarget) { p.TimeoutMs = 99 }), "push.timeout", "is 0.099 s"},
		rule{push(func(p *jobpb.PushTarget) { p.TimeoutMs = job.MaxPushTimeout.Milliseconds() + 1 }), "push.timeout", "is 300.001 s"},
		rule{push(func(p *jobpb.PushTarget) { p.Concurrency = job.MaxPushConcurrency + 1 }), "push.concurrency", "is 101"},
	)
}

func scheduleRules() []checked {
	put := func(f func(*jobpb.Schedule)) func(*jobpb.Op) {
		return func(op *jobpb.Op) { f(op.GetPutSchedule().Schedule) }
	}
	fire := func(f func(*jobpb.FireSchedule)) func(*jobpb.Op) {
		return func(op *jobpb.Op) { f(op.GetFireSchedule()) }
	}
	template := func(op *jobpb.Op) *jobpb.Add { return op.GetPutSchedule().Schedule.Job }
	runs := func(planned ...int64) (list []*jobpb.ScheduledRun) {
		for _, ms := range planned {
			list = append(list, &jobpb.ScheduledRun{PlannedMs: ms})
		}
		return list
	}
	// A body over the limit of a schedule is one over the limit of a job too.
	addRules := addRules(template, under("job."))
	return []checked{
		{&jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: "s", Schedule: goodSchedule()}}}, append(addRules,
			rule{func(op *jobpb.Op) { op.GetPutSchedule().Name = "" }, "name", "missing or empty"},
			rule{func(op *jobpb.Op) { op.GetPutSchedule().Name = long(job.MaxScheduleNameBytes + 1) }, "name", "has 151 bytes; the limit is 150"},
			rule{func(op *jobpb.Op) { op.GetPutSchedule().Name = "a{" }, "name", "braces are not allowed"},
			rule{func(op *jobpb.Op) { op.GetPutSchedule().Name = "preview" }, "name", "reserved for the call"},
			rule{func(op *jobpb.Op) { op.GetPutSchedule().Name = "$s" }, "name", "reserved for ids made by the server"},
			rule{put(func(s *jobpb.Schedule) { s.Job = nil }), "job", "is missing"},
			rule{put(func(s *jobpb.Schedule) { s.Job.Id = "a" }), "job", "has no id"},
			rule{put(func(s *jobpb.Schedule) { s.Job.DelayMs = 1 }), "job", "has no id, delay"},
			rule{put(func(s *jobpb.Schedule) { s.Job.DueMs = 1 }), "job", "has no id, delay, due instant"},
			rule{put(func(s *jobpb.Schedule) { s.Job.IfExists = 1 }), "job", "of a schedule has no"},
			rule{put(func(s *jobpb.Schedule) { s.Job.Condition = &jobpb.Condition{} }), "job", "or condition"},
			rule{put(func(s *jobpb.Schedule) { s.Job.Body = make([]byte, job.MaxScheduleBodyBytes+1) }), "job.body", "has 65537 bytes; the limit of a schedule is 65536"},
			rule{put(func(s *jobpb.Schedule) { s.JitterMs = -1 }), "jitter", "is -0.001 s"},
			rule{put(func(s *jobpb.Schedule) { s.JitterMs = job.MaxJitter.Milliseconds() + 1 }), "jitter", "between 0 and 86400 s"},
			rule{put(func(s *jobpb.Schedule) { s.Overlap = 2 }), "overlap", "is 2"},
			rule{put(func(s *jobpb.Schedule) { s.Missed = 3 }), "missed", "is 3"},
			rule{put(func(s *jobpb.Schedule) { s.MissedMax = 1 }), "missed_max", "goes with \"missed\":\"all\" only"},
			rule{put(func(s *jobpb.Schedule) { s.Missed = jobpb.Missed_MISSED_ALL }), "missed_max", "is 0; it must be between 1 and 1000"},
			rule{put(func(s *jobpb.Schedule) { s.Missed, s.MissedMax = jobpb.Missed_MISSED_ALL, job.MaxScheduleRuns+1 }), "missed_max", "is 1001"},
			rule{put(func(s *jobpb.Schedule) { s.MissedAfterMs = 0 }), "missed_after", "is 0 s; it must be between 0.001 and 86400 s"},
			rule{put(func(s *jobpb.Schedule) { s.MissedAfterMs = job.MaxMissedAfter.Milliseconds() + 1 }), "missed_after", "is 86400.001 s"},
			rule{put(func(s *jobpb.Schedule) { s.Spec = "" }), "spec", "has 0 bytes; it takes 1 to 200"},
			rule{put(func(s *jobpb.Schedule) { s.Spec = long(job.MaxSpecBytes + 1) }), "spec", "has 201 bytes"},
			rule{put(func(s *jobpb.Schedule) { s.Zone = "" }), "zone", "has 0 bytes"},
			rule{put(func(s *jobpb.Schedule) { s.Zone = long(job.MaxSpecBytes + 1) }), "zone", "has 201 bytes"},
			rule{put(func(s *jobpb.Schedule) { s.StartMs = -1 }), "start", "before 1970"},
			rule{put(func(s *jobpb.Schedule) { s.EndMs = -1 }), "start", "before 1970"},
			rule{put(func(s *jobpb.Schedule) { s.StartMs, s.EndMs = 2, 1 }), "end", "lies before start"},
		)},
		{&jobpb.Op{Kind: &jobpb.Op_DeleteSchedule{DeleteSchedule: &jobpb.DeleteSchedule{}}}, nil},
		{&jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: &jobpb.FireSchedule{ExpectNextMs: 5, Missed: 1, LastMissedMs: 6, Runs: runs(7, 8), NextMs: 9}}}, []rule{
			{fire(func(f *jobpb.FireSchedule) { f.Runs = make([]*jobpb.ScheduledRun, job.MaxScheduleRuns+1) }), "runs", "has 1001 items"},
			{fire(func(f *jobpb.FireSchedule) { f.Runs[0].OffsetS = maxOffsetS + 1 }), "runs", "a day away"},
			{fire(func(f *jobpb.FireSchedule) { f.Runs[0].OffsetS = -maxOffsetS - 1 }), "runs", "a day away"},
			{fire(func(f *jobpb.FireSchedule) { f.Now = true }), "now", "goes with one run"},
			{fire(func(f *jobpb.FireSchedule) { f.Key = "k" }), "key", "out of turn"},
			{fire(func(f *jobpb.FireSchedule) { f.Trouble = "t" }), "trouble", "goes with no run"},
			{fire(func(f *jobpb.FireSchedule) { f.Missed, f.Runs, f.Trouble = 0, nil, long(job.MaxReasonBytes+1) }), "trouble", "at most 1000 bytes"},
			{fire(func(f *jobpb.FireSchedule) { f.ExpectNextMs = 0 }), "runs", "before the first instant"},
			{fire(func(f *jobpb.FireSchedule) { f.LastMissedMs = 4 }), "missed", "out of order"},
			{fire(func(f *jobpb.FireSchedule) { f.LastMissedMs = job.MaxInstantMS + 1 }), "missed", "out of order"},
			{fire(func(f *jobpb.FireSchedule) { f.Runs = runs(6) }), "runs", "out of order"},
			{fire(func(f *jobpb.FireSchedule) { f.Runs = runs(8, 8) }), "runs", "out of order"},
			{fire(func(f *jobpb.FireSchedule) { f.Runs = runs(job.MaxInstantMS + 1) }), "runs", "out of order"},
			{fire(func(f *jobpb.FireSchedule) { f.NextMs = 8 }), "next", "not behind the last run"},
			{fire(func(f *jobpb.FireSchedule) { f.NextMs = job.MaxInstantMS + 1 }), "next", "not behind"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: &jobpb.FireSchedule{Now: true, Key: "k", Runs: runs(0)}}}, []rule{
			{fire(func(f *jobpb.FireSchedule) { f.Runs = nil }), "now", "goes with one run"},
			{fire(func(f *jobpb.FireSchedule) { f.Missed = 1 }), "now", "goes with one run"},
			{fire(func(f *jobpb.FireSchedule) { f.Trouble = "t" }), "now", "goes with one run"},
			{fire(func(f *jobpb.FireSchedule) { f.Key = long(job.MaxRunKeyBytes + 1) }), "key", "has 41 bytes; the limit is 40"},
			{fire(func(f *jobpb.FireSchedule) { f.Key = "a\n" }), "key", "control character"},
		}},
	}
}

// leaderRules returns the rules of the operations that no client makes.
func leaderRules() []checked {
	return []checked{
		{&jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 1}}}, []rule{
			{func(op *jobpb.Op) { op.GetAdvance().Max = 0 }, "max", "is 0; it must be between 1 and 10000"},
			{func(op *jobpb.Op) { op.GetAdvance().Max = job.MaxKick + 1 }, "max", "is 10001"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_AdvanceAt{AdvanceAt: &jobpb.AdvanceAt{AtMs: 1, Advance: &jobpb.Advance{Max: 1}, Reserves: []*jobpb.Reserve{{Topics: []string{"t"}, Max: 1}}}}}, []rule{
			{func(op *jobpb.Op) { op.GetAdvanceAt().AtMs = 0 }, "at_ms", "is 0; it must be between 1 and"},
			{func(op *jobpb.Op) { op.GetAdvanceAt().AtMs = job.MaxInstantMS + 1 }, "at_ms", "it must be between 1 and"},
			{func(op *jobpb.Op) { op.GetAdvanceAt().Advance = nil }, "max", "is 0; it must be between 1 and 10000"},
			{func(op *jobpb.Op) { op.GetAdvanceAt().Reserves = make([]*jobpb.Reserve, MaxReservesAhead+1) }, "reserves", "is 257"},
			{func(op *jobpb.Op) { op.GetAdvanceAt().Reserves[0].Topics = nil }, "topics", "has 0 names"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_Migrate{Migrate: &jobpb.Migrate{Max: 1}}}, []rule{
			{func(op *jobpb.Op) { op.GetMigrate().Max = 0 }, "max", "is 0; it must be between 1 and 10000"},
			{func(op *jobpb.Op) { op.GetMigrate().Max = job.MaxMigrate + 1 }, "max", "is 10001"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_FollowLog{FollowLog: &jobpb.FollowLog{Primary: "p", Entries: []*jobpb.FollowedEntry{{Index: 7, Term: 1}, {Index: 8, Term: 1}}}}}, []rule{
			{func(op *jobpb.Op) { op.GetFollowLog().Primary = "" }, "primary", "is missing"},
			{func(op *jobpb.Op) { op.GetFollowLog().Entries = make([]*jobpb.FollowedEntry, MaxFollowEntries+1) }, "entries", "has 4097 items; the limit is 4096"},
			{func(op *jobpb.Op) { op.GetFollowLog().Entries[0].Index = 0 }, "entries[0].index", "is 0; the entries must be in order"},
			{func(op *jobpb.Op) { op.GetFollowLog().Entries[1].Index = 9 }, "entries[1].index", "is 9; the entries must be in order"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_PromoteStandby{PromoteStandby: &jobpb.PromoteStandby{}}}, nil},
		{&jobpb.Op{Kind: &jobpb.Op_PutStateChunk{PutStateChunk: &jobpb.PutStateChunk{Upload: 1, Data: []byte("a")}}}, []rule{
			{func(op *jobpb.Op) { op.GetPutStateChunk().Upload = 0 }, "upload", "is missing"},
			{func(op *jobpb.Op) { op.GetPutStateChunk().Data = nil }, "data", "is 0"},
			{func(op *jobpb.Op) { op.GetPutStateChunk().Data = make([]byte, MaxStateChunk+1) }, "data", "is 1048577"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_DropStateChunks{DropStateChunks: &jobpb.DropStateChunks{Upload: 1}}}, nil},
		{&jobpb.Op{Kind: &jobpb.Op_ReplaceState{ReplaceState: &jobpb.ReplaceState{Upload: 1}}}, nil},
		{&jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: "c"}}}, []rule{
			{func(op *jobpb.Op) { op.GetSetCluster().ClusterId = "" }, "cluster_id", "missing or empty"},
		}},
		{setSharding(4, 0, "n1.a"), []rule{
			{func(op *jobpb.Op) { op.GetSetCluster().ClusterId = "" }, "cluster_id", "missing or empty"},
			{func(op *jobpb.Op) { op.GetSetCluster().Sharding.Shards = 1 }, "shards", "is 1; it takes a power of two from 2 to 4096"},
			{func(op *jobpb.Op) { op.GetSetCluster().Sharding.Shards = 6 }, "shards", "is 6"},
			{func(op *jobpb.Op) { op.GetSetCluster().Sharding.Shards = 8192 }, "shards", "is 8192"},
			{func(op *jobpb.Op) { op.GetSetCluster().Sharding.Group = 5 }, "group", "is 5; it takes 0 to 4"},
			{func(op *jobpb.Op) { op.GetSetCluster().Sharding.Group = 4 }, "voters", "has 1 servers"},
			{func(op *jobpb.Op) { op.GetSetCluster().Sharding.Voters = nil }, "voters", "has 0 servers"},
			{func(op *jobpb.Op) { op.GetSetCluster().Sharding.Voters = make([]*jobpb.Voter, 65) }, "voters", "has 65 servers"},
			{func(op *jobpb.Op) { op.GetSetCluster().Sharding.Voters[0].ServerId = "" }, "voters[0].server_id", "missing or empty"},
			{func(op *jobpb.Op) { op.GetSetCluster().Sharding.Voters[0].Address = "" }, "voters[0].address", "missing or empty"},
		}},
		{setSharding(4, 4), nil},
		{&jobpb.Op{Kind: &jobpb.Op_ConfigLog{ConfigLog: &jobpb.ConfigLog{Epoch: 1, Changes: make([]*jobpb.ConfigChange, 2)}}}, []rule{
			{func(op *jobpb.Op) { op.GetConfigLog().Epoch = 0 }, "epoch", "is missing"},
			{func(op *jobpb.Op) { op.GetConfigLog().Changes = nil }, "changes", "are 0"},
			{func(op *jobpb.Op) { op.GetConfigLog().Part = new(jobpb.ConfigPart) }, "changes", "or a part"},
			{func(op *jobpb.Op) { op.GetConfigLog().Changes = make([]*jobpb.ConfigChange, maxConfigChanges+1) }, "changes", "are 4097"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_ConfigLog{ConfigLog: &jobpb.ConfigLog{Epoch: 1, Part: &jobpb.ConfigPart{From: []byte("b"), Next: []byte("c")}}}}, []rule{
			{func(op *jobpb.Op) { op.GetConfigLog().Part.Next = []byte("b") }, "next", "is not after from"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_ForgetMember{ForgetMember: &jobpb.ForgetMember{ServerId: "n"}}}, []rule{
			{func(op *jobpb.Op) { op.GetForgetMember().ServerId = "" }, "server_id", "missing or empty"},
			{func(op *jobpb.Op) { op.GetForgetMember().NodeId = long(201) }, "node_id", "has 201 bytes"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_AdmitNode{AdmitNode: &jobpb.AdmitNode{NodeId: "n"}}}, []rule{
			{func(op *jobpb.Op) { op.GetAdmitNode().NodeId = "" }, "node_id", "missing or empty"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_PutInvitation{PutInvitation: &jobpb.PutInvitation{
			Invitation: &jobpb.Invitation{Id: "i", PublicKey: make([]byte, 32), NodeId: "n"}, ExpiresInMs: 1000,
		}}}, []rule{
			{func(op *jobpb.Op) { op.GetPutInvitation().Invitation = nil }, "id", "is missing"},
			{func(op *jobpb.Op) { op.GetPutInvitation().Invitation.Id = "I" }, "id", "takes only the characters"},
			{func(op *jobpb.Op) { op.GetPutInvitation().Invitation.PublicKey = make([]byte, 31) }, "public_key", "has 31 bytes; it takes 32"},
			{func(op *jobpb.Op) { op.GetPutInvitation().Invitation.NodeId = long(201) }, "node", "has 201 bytes"},
			{func(op *jobpb.Op) { op.GetPutInvitation().Invitation.ServerId = "n.1" }, "id", "has fields that only the state machine sets"},
			{func(op *jobpb.Op) { op.GetPutInvitation().Invitation.UsedMs = 1 }, "id", "has fields that only the state machine sets"},
			{func(op *jobpb.Op) { op.GetPutInvitation().Invitation.CreatedMs = 1 }, "id", "has fields that only the state machine sets"},
			{func(op *jobpb.Op) { op.GetPutInvitation().Invitation.ExpiresMs = 1 }, "id", "has fields that only the state machine sets"},
			{func(op *jobpb.Op) { op.GetPutInvitation().ExpiresInMs = 999 }, "expires_in", "is 0.999"},
			{func(op *jobpb.Op) { op.GetPutInvitation().ExpiresInMs = job.MaxInvitationTime.Milliseconds() + 1 }, "expires_in", "2592000"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_EndInvitation{EndInvitation: &jobpb.EndInvitation{Id: "i", ServerId: "n.1"}}}, []rule{
			{func(op *jobpb.Op) { op.GetEndInvitation().Id = "" }, "id", "has 0 bytes"},
			{func(op *jobpb.Op) { op.GetEndInvitation().ServerId = long(201) }, "server_id", "has 201 bytes"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_SetAdmission{SetAdmission: &jobpb.SetAdmission{}}}, []rule{
			{func(op *jobpb.Op) { op.GetSetAdmission().Mode = 2 }, "mode", "is not known"},
			{func(op *jobpb.Op) { op.GetSetAdmission().Mode = -1 }, "mode", "is not known"},
		}},
		// Whether these are valid depends on the state.
		{&jobpb.Op{Kind: &jobpb.Op_Mark{Mark: &jobpb.Mark{}}}, nil},
		{&jobpb.Op{Kind: &jobpb.Op_RaiseVersion{RaiseVersion: &jobpb.RaiseVersion{}}}, nil},
		{&jobpb.Op{Kind: &jobpb.Op_ResetClock{ResetClock: &jobpb.ResetClock{}}}, nil},
	}
}

func setSharding(shards, group uint32, voters ...string) *jobpb.Op {
	s := &jobpb.Sharding{Shards: shards, Group: group}
	for _, id := range voters {
		s.Voters = append(s.Voters, &jobpb.Voter{ServerId: id, Address: "host:7301"})
	}
	return &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: "c", Sharding: s}}}
}
