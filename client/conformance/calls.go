package main

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"tarry/client"
)

// verbs are the calls that a case can make.
var verbs = map[string]func(context.Context, *driver, json.RawMessage) (any, error){
	"open":         verb(open),
	"stream_open":  verb(streamOpen),
	"stream_next":  verb(streamNext),
	"stream_close": verb(streamClose),

	"add": verb(func(ctx context.Context, d *driver, a addArgs) (any, error) { return d.client.Add(ctx, a.add()) }),
	"add_batch": verb(func(ctx context.Context, d *driver, a jobsArgs[addArgs]) (any, error) {
		results, err := d.client.AddBatch(ctx, adds(a.Jobs))
		list := make([]any, len(results))
		for i, r := range results {
			list[i] = r.Added
			if r.Err != nil {
				list[i] = failure(r.Err)
			}
		}
		return object{"results": list}, err
	}),
	"add_all": verb(func(ctx context.Context, d *driver, a jobsArgs[addArgs]) (any, error) {
		return inMember("results")(d.client.AddAll(ctx, adds(a.Jobs)))
	}),
	"get": verb(func(ctx context.Context, d *driver, a refArgs) (any, error) { return d.client.Get(ctx, a.ID) }),
	"get_batch": verb(func(ctx context.Context, d *driver, a struct {
		IDs  []string `json:"ids"`
		Body *bool    `json:"body"`
	}) (any, error) {
		results, err := d.client.GetBatch(ctx, a.IDs, a.Body == nil || *a.Body)
		list := make([]any, len(results))
		for i, r := range results {
			list[i] = r.Job
			if r.Err != nil {
				list[i] = failure(r.Err)
			}
		}
		return object{"results": list}, err
	}),
	"history": verb(func(ctx context.Context, d *driver, a refArgs) (any, error) { return d.client.History(ctx, a.ID) }),
	"explain": verb(func(ctx context.Context, d *driver, a refArgs) (any, error) { return d.client.Explain(ctx, a.ID) }),
	"update":  verb(update),
	"delete": verb(func(ctx context.Context, d *driver, a struct {
		refArgs
		client.Condition
	}) (any, error) {
		return object{}, d.client.DeleteIf(ctx, a.ref(), a.Condition)
	}),
	"reserve": verb(reserve),
	"finish": verb(func(ctx context.Context, d *driver, a refArgs) (any, error) {
		return object{}, d.client.Finish(ctx, a.ref())
	}),
	"finish_and_reserve": verb(finishAndReserve),
	"finish_batch": verb(func(ctx context.Context, d *driver, a jobsArgs[refArgs]) (any, error) {
		errs, err := d.client.FinishBatch(ctx, refs(a.Jobs))
		return object{"results": outcomes(errs)}, err
	}),
	"delete_batch": verb(func(ctx context.Context, d *driver, a jobsArgs[refArgs]) (any, error) {
		errs, err := d.client.DeleteBatch(ctx, refs(a.Jobs))
		return object{"results": outcomes(errs)}, err
	}),
	"kick_batch": verb(func(ctx context.Context, d *driver, a struct {
		IDs []string `json:"ids"`
	}) (any, error) {
		return changes(d.client.KickBatch(ctx, a.IDs))
	}),
	"update_batch": verb(func(ctx context.Context, d *driver, a jobsArgs[updateArgs]) (any, error) {
		updates := make([]client.JobUpdate, len(a.Jobs))
		for i, u := range a.Jobs {
			updates[i] = client.JobUpdate{ID: u.ID, Update: u.update()}
		}
		return changes(d.client.UpdateBatch(ctx, updates))
	}),
	"finish_then": verb(func(ctx context.Context, d *driver, a struct {
		refArgs
		Then []addArgs `json:"then"`
	}) (any, error) {
		return inMember("results")(d.client.FinishThen(ctx, a.ref(), adds(a.Then)))
	}),
	"touch": verb(func(ctx context.Context, d *driver, a struct {
		refArgs
		TTR client.Duration `json:"ttr"`
	}) (any, error) {
		return d.client.Touch(ctx, a.ref(), a.TTR.Duration)
	}),
	"release": verb(release),
	"bury": verb(func(ctx context.Context, d *driver, a struct {
		refArgs
		Priority *uint32 `json:"priority"`
		Reason   string  `json:"reason"`
	}) (any, error) {
		return d.client.Bury(ctx, a.ref(), client.BuryOptions{Priority: a.Priority, Reason: a.Reason})
	}),
	"kick": verb(func(ctx context.Context, d *driver, a struct {
		refArgs
		ToTopic string `json:"to_topic"`
	}) (any, error) {
		if a.ToTopic != "" {
			return d.client.KickTo(ctx, a.ID, a.ToTopic)
		}
		return d.client.Kick(ctx, a.ID)
	}),
	"move": verb(func(ctx context.Context, d *driver, a struct {
		refArgs
		To string `json:"to"`
	}) (any, error) {
		return d.client.Move(ctx, a.ref(), a.To)
	}),
	"delete_jobs": verb(func(ctx context.Context, d *driver, a foundArgs) (any, error) {
		return changed("deleted")(d.client.DeleteJobs(ctx, a.found()))
	}),
	"update_jobs": verb(func(ctx context.Context, d *driver, a foundArgs) (any, error) {
		return changed("updated")(d.client.UpdateJobs(ctx, a.found(), a.Changes.update()))
	}),
	"kick_jobs": verb(func(ctx context.Context, d *driver, a foundArgs) (any, error) {
		return changed("kicked")(d.client.KickJobs(ctx, a.found(), a.ToTopic))
	}),
	"list":       verb(list),
	"kick_topic": verb(kickTopic),
	"purge": verb(func(ctx context.Context, d *driver, a struct {
		sweepArgs
		State client.State `json:"state"`
	}) (any, error) {
		return swept("deleted")(d.client.Topics().Purge(ctx, a.Topic, a.State, a.sweep()))
	}),
	"move_topic": verb(func(ctx context.Context, d *driver, a struct {
		sweepArgs
		To     string         `json:"to"`
		States []client.State `json:"states"`
		Cursor string         `json:"cursor"`
	}) (any, error) {
		if reflect.ValueOf(a.Filter).IsZero() && a.Max == 0 {
			return swept("moved")(d.client.Topics().MoveAll(ctx, a.Topic, a.To, a.States...))
		}
		m, err := d.client.Topics().Move(ctx, a.Topic, client.MoveOptions{Sweep: a.sweep(), To: a.To, States: a.States, Cursor: a.Cursor})
		return object{"moved": m.Count, "skipped": m.Skipped, "more": m.More, "next": m.Next}, err
	}),
	"topic": verb(func(ctx context.Context, d *driver, a topicArgs) (any, error) {
		return d.client.Topics().Get(ctx, a.Topic)
	}),
	"topics":          verb(topics),
	"stats":           verb(func(ctx context.Context, d *driver, _ struct{}) (any, error) { return d.client.Topics().Stats(ctx) }),
	"forecast":        verb(forecast),
	"forecast_topics": verb(forecastTopics),
	"rates": verb(func(ctx context.Context, d *driver, a topicArgs) (any, error) {
		return d.client.Topics().Rates(ctx, a.Topic)
	}),
	"release_topic": verb(func(ctx context.Context, d *driver, a struct {
		sweepArgs
		Consumer string `json:"consumer"`
		Reason   string `json:"reason"`
	}) (any, error) {
		return swept("released")(d.client.Topics().Release(ctx, a.Topic, a.Consumer, a.Reason, a.sweep()))
	}),
	"reschedule":  verb(reschedule),
	"dead":        verb(dead),
	"dead_topics": verb(deadTopics),
	"kick_dead":   verb(kickDead),
	"purge_dead":  verb(purgeDead),
	"pause": verb(func(ctx context.Context, d *driver, a struct {
		topicArgs
		For   client.Duration `json:"for"`
		Until time.Time       `json:"until"`
	}) (any, error) {
		if !a.Until.IsZero() {
			return d.client.Topics().PauseUntil(ctx, a.Topic, a.Until)
		}
		return d.client.Topics().Pause(ctx, a.Topic, a.For.Duration)
	}),
	"resume": verb(func(ctx context.Context, d *driver, a topicArgs) (any, error) {
		return d.client.Topics().Resume(ctx, a.Topic)
	}),
	"settings": verb(func(ctx context.Context, d *driver, a topicArgs) (any, error) {
		return d.client.Topics().Settings(ctx, a.Topic)
	}),
	"set_settings": verb(func(ctx context.Context, d *driver, a struct {
		topicArgs
		Settings client.Settings `json:"settings"`
	}) (any, error) {
		return d.client.Topics().SetSettings(ctx, a.Topic, a.Settings, 0)
	}),
	"change_settings": verb(changeSettings),
	"delete_settings": verb(func(ctx context.Context, d *driver, a topicArgs) (any, error) {
		return d.client.Topics().DeleteSettings(ctx, a.Topic, client.AnyRevision)
	}),
	"all_settings": verb(func(ctx context.Context, d *driver, a pageArgs) (any, error) {
		return listed("topics", d.client.Topics().AllSettings(ctx, a.page()))
	}),

	"schedules": verb(func(ctx context.Context, d *driver, a pageArgs) (any, error) {
		return listed("schedules", d.client.Schedules().List(ctx, a.page()))
	}),
	"put_schedule": verb(func(ctx context.Context, d *driver, a struct {
		nameArgs
		Schedule client.Schedule `json:"schedule"`
	}) (any, error) {
		return d.client.Schedules().Put(ctx, a.Name, a.Schedule, 0)
	}),
	"schedule": verb(func(ctx context.Context, d *driver, a nameArgs) (any, error) {
		return d.client.Schedules().Get(ctx, a.Name)
	}),
	"delete_schedule": verb(func(ctx context.Context, d *driver, a nameArgs) (any, error) {
		return object{}, d.client.Schedules().Delete(ctx, a.Name, 0)
	}),
	"pause_schedule": verb(func(ctx context.Context, d *driver, a nameArgs) (any, error) {
		return object{}, d.client.Schedules().Pause(ctx, a.Name)
	}),
	"resume_schedule": verb(func(ctx context.Context, d *driver, a nameArgs) (any, error) {
		return object{}, d.client.Schedules().Resume(ctx, a.Name)
	}),
	"run_schedule": verb(func(ctx context.Context, d *driver, a struct {
		nameArgs
		Key string `json:"key"`
	}) (any, error) {
		return d.client.Schedules().Run(ctx, a.Name, a.Key)
	}),
	"schedule_runs": verb(func(ctx context.Context, d *driver, a nameArgs) (any, error) {
		return inMember("runs")(d.client.Schedules().Runs(ctx, a.Name))
	}),
	"preview_schedule": verb(func(ctx context.Context, d *driver, a struct {
		nameArgs
		Count int `json:"count"`
	}) (any, error) {
		return inMember("runs")(d.client.Schedules().Preview(ctx, a.Name, a.Count))
	}),
	"preview_spec": verb(func(ctx context.Context, d *driver, a struct {
		client.Schedule
		After time.Time `json:"after"`
		Count int       `json:"count"`
	}) (any, error) {
		return inMember("runs")(d.client.Schedules().PreviewSpec(ctx, a.Schedule, a.After, a.Count))
	}),

	"whoami":       verb(whoAmI),
	"tokens":       verb(tokens),
	"token":        verb(token),
	"put_token":    verb(putToken),
	"rotate_token": verb(rotateToken),
	"delete_token": verb(deleteToken),

	"namespaces":       verb(namespaces),
	"namespace":        verb(namespace),
	"put_namespace":    verb(putNamespace),
	"delete_namespace": verb(deleteNamespace),

	"members": verb(func(ctx context.Context, d *driver, _ struct{}) (any, error) {
		return inMember("members")(d.client.Cluster().Members(ctx))
	}),
	"health": verb(func(ctx context.Context, d *driver, _ struct{}) (any, error) { return d.client.Cluster().Health(ctx) }),
	"clocks": verb(func(ctx context.Context, d *driver, _ struct{}) (any, error) { return d.client.Cluster().Clocks(ctx) }),
	"verify": verb(func(ctx context.Context, d *driver, _ struct{}) (any, error) { return d.client.Cluster().Verify(ctx) }),
	"transfer_leadership": verb(func(ctx context.Context, d *driver, a refArgs) (any, error) {
		moved, err := d.client.Cluster().TransferLeadership(ctx, a.ID)
		return object{"moved": moved}, err
	}),
	"remove_member": verb(func(ctx context.Context, d *driver, a refArgs) (any, error) {
		return object{}, d.client.Cluster().RemoveMember(ctx, a.ID)
	}),
	"join": verb(func(ctx context.Context, d *driver, a struct {
		Addresses []string `json:"addresses"`
	}) (any, error) {
		return object{}, d.client.Node().Join(ctx, a.Addresses)
	}),
	"leave": verb(func(ctx context.Context, d *driver, _ struct{}) (any, error) {
		return object{}, d.client.Node().Leave(ctx)
	}),
	"reset_clock": verb(func(ctx context.Context, d *driver, _ struct{}) (any, error) {
		return object{}, d.client.Cluster().ResetClock(ctx)
	}),
}

// inMember puts a list into an object.
func inMember(name string) func(list any, err error) (any, error) {
	return func(list any, err error) (any, error) { return object{name: list}, err }
}

func swept(name string) func(s client.Swept, err error) (any, error) {
	return func(s client.Swept, err error) (any, error) { return object{name: s.Count, "more": s.More}, err }
}

func changed(name string) func(c client.ChangedJobs, err error) (any, error) {
	return func(c client.ChangedJobs, err error) (any, error) {
		return object{name: c.Count, "skipped": c.Skipped, "more": c.More, "next": c.Next}, err
	}
}

type foundArgs struct {
	Found struct {
		topicArgs
		client.Filter
		State  client.State `json:"state"`
		Max    int          `json:"max"`
		Cursor string       `json:"cursor"`
	} `json:"found"`
	Changes updateArgs `json:"changes"`
	ToTopic string     `json:"to_topic"`
}

func (a foundArgs) found() client.Selection {
	f := a.Found
	return client.Selection{Topic: f.Topic, State: f.State, Filter: f.Filter, Max: f.Max, Cursor: f.Cursor}
}

type jobsArgs[T any] struct {
	Jobs []T `json:"jobs"`
}

type refArgs struct {
	ID    string `json:"id"`
	Token string `json:"token"`
}

func (a refArgs) ref() client.Ref { return client.Ref{ID: a.ID, Token: a.Token} }

type topicArgs struct {
	Topic string `json:"topic"`
}

type nameArgs struct {
	Name string `json:"name"`
}

type addArgs struct {
	Topic       string            `json:"topic"`
	ID          string            `json:"id"`
	Delay       client.Duration   `json:"delay"`
	DueAt       time.Time         `json:"due_at"`
	ExpiresAt   time.Time         `json:"expires_at"`
	TTR         client.Duration   `json:"ttr"`
	Priority    *uint32           `json:"priority"`
	MaxAttempts *uint32           `json:"max_attempts"`
	Backoff     json.RawMessage   `json:"backoff"`
	Headers     map[string]string `json:"headers"`
	PushURL     string            `json:"push_url"`
	IfExists    client.IfExists   `json:"if_exists"`
	client.Body
}

func (a addArgs) add() client.NewJob {
	return client.NewJob{
		ID: a.ID, Topic: a.Topic, Body: a.Body, Delay: a.Delay.Duration, DueAt: a.DueAt, ExpiresAt: a.ExpiresAt, TTR: a.TTR.Duration,
		Priority: a.Priority, MaxAttempts: a.MaxAttempts, Backoff: backoff(a.Backoff), Headers: a.Headers, PushURL: a.PushURL, IfExists: a.IfExists,
	}
}

// backoff reads either form of a backoff: a list of delays, or an object.
func backoff(text json.RawMessage) *client.Backoff {
	if len(text) == 0 {
		return nil
	}
	b := &client.Backoff{}
	if json.Unmarshal(text, &b.Delays) != nil {
		_ = json.Unmarshal(text, b) // a wrong one is refused by the server
	}
	return b
}

func adds(list []addArgs) []client.NewJob {
	made := make([]client.NewJob, len(list))
	for i, a := range list {
		made[i] = a.add()
	}
	return made
}

type updateArgs struct {
	ID          string            `json:"id"`
	Delay       *client.Duration  `json:"delay"`
	DueAt       time.Time         `json:"due_at"`
	ExpiresAt   string            `json:"expires_at"`
	TTR         client.Duration   `json:"ttr"`
	Priority    *uint32           `json:"priority"`
	MaxAttempts *uint32           `json:"max_attempts"`
	Backoff     json.RawMessage   `json:"backoff"`
	Headers     map[string]string `json:"headers"`
	PushURL     *string           `json:"push_url"`
	client.Body
	client.Condition
}

func (a updateArgs) update() client.Update {
	u := client.Update{
		DueAt: a.DueAt, TTR: a.TTR.Duration, Priority: a.Priority, MaxAttempts: a.MaxAttempts,
		Backoff: backoff(a.Backoff), Headers: a.Headers, PushURL: a.PushURL, Condition: a.Condition,
	}
	if a.Delay != nil {
		u.Delay = &a.Delay.Duration
	}
	if u.NeverExpire = a.ExpiresAt == "never"; a.ExpiresAt != "" && !u.NeverExpire {
		u.ExpiresAt, _ = time.Parse(time.RFC3339, a.ExpiresAt) // the cases have good ones
	}
	if a.Value != nil || a.Base64 != "" {
		u.Body = &a.Body
	}
	return u
}

func update(ctx context.Context, d *driver, a updateArgs) (any, error) {
	return d.client.Update(ctx, a.ID, a.update())
}

type reserveArgs struct {
	Topics   []string        `json:"topics"`
	Max      int             `json:"max"`
	Wait     client.Duration `json:"wait"`
	TTR      client.Duration `json:"ttr"`
	Consumer string          `json:"consumer"`
}

func (a reserveArgs) reserve() client.ReserveOptions {
	return client.ReserveOptions{Topics: a.Topics, Max: a.Max, Wait: a.Wait.Duration, TTR: a.TTR.Duration, Consumer: a.Consumer}
}

func reserve(ctx context.Context, d *driver, a reserveArgs) (any, error) {
	jobs, err := d.client.Reserve(ctx, a.reserve())
	return object{"jobs": append([]client.Reserved{}, jobs...)}, err
}

func finishAndReserve(ctx context.Context, d *driver, a struct {
	reserveArgs
	Finish []refArgs `json:"finish"`
}) (any, error) {
	jobs, errs, err := d.client.FinishAndReserve(ctx, refs(a.Finish), a.reserve())
	return object{"finished": outcomes(errs), "jobs": append([]client.Reserved{}, jobs...)}, err
}

func refs(args []refArgs) []client.Ref {
	list := make([]client.Ref, len(args))
	for i, a := range args {
		list[i] = a.ref()
	}
	return list
}

// changes has what became of each job.
func changes(results []client.ChangeResult, err error) (any, error) {
	list := make([]any, len(results))
	for i, r := range results {
		list[i] = r.Changed
		if r.Err != nil {
			list[i] = failure(r.Err)
		}
	}
	return object{"results": list}, err
}

// outcomes has an empty object for each nil error.
func outcomes(errs []error) []any {
	list := make([]any, len(errs))
	for i, e := range errs {
		list[i] = object{}
		if e != nil {
			list[i] = failure(e)
		}
	}
	return list
}

func release(ctx context.Context, d *driver, a struct {
	refArgs
	Delay    *client.Duration `json:"delay"`
	Priority *uint32          `json:"priority"`
	Reason   string           `json:"reason"`
}) (any, error) {
	r := client.ReleaseOptions{Priority: a.Priority, Reason: a.Reason}
	if a.Delay != nil {
		r.Delay, r.AtOnce = a.Delay.Duration, a.Delay.Duration == 0
	}
	return d.client.Release(ctx, a.ref(), r)
}

func list(ctx context.Context, d *driver, a struct {
	topicArgs
	client.Filter
	State client.State    `json:"state"`
	Body  json.RawMessage `json:"body"`
	Max   int             `json:"max"`
}) (any, error) {
	q := client.ListOptions{Topic: a.Topic, State: a.State, Filter: a.Filter, Bodies: string(a.Body) == "true", Page: a.Max}
	return listed("jobs", d.client.Jobs(ctx, q))
}

type sweepArgs struct {
	topicArgs
	Max    int           `json:"max"`
	Filter client.Filter `json:"filter"`
}

func (a sweepArgs) sweep() client.Sweep { return client.Sweep{Max: a.Max, Filter: a.Filter} }

func kickTopic(ctx context.Context, d *driver, a struct {
	sweepArgs
	Rate    float64 `json:"rate"`
	ToTopic string  `json:"to_topic"`
}) (any, error) {
	return swept("kicked")(d.client.Topics().Kick(ctx, a.Topic, client.KickOptions{Sweep: a.sweep(), Rate: a.Rate, ToTopic: a.ToTopic}))
}
