package wire

// These are the parameters of queries and the headers of requests, for those who describe and check
// them. They are read one by one.

type Consistency struct {
	Consistency string `json:"consistency" help:"stale reads this node's own state, which may be behind." of:"consistent stale"`
}

type Revision struct {
	IfRevision uint64 `json:"if_revision"`
}

type AuthRevision struct {
	IfRevision uint64 `json:"if_revision" help:"Only if it has this revision." limit:"positive"`
}

type PageQuery struct {
	Cursor string `json:"cursor" help:"The next of the page before."`
	After  string `json:"after" help:"The old name of cursor."`
	Max    uint64 `json:"max" help:"How many at most." limit:"page"`
	Consistency
}

type TokensQuery struct {
	Cursor string `json:"cursor" help:"The next of the page before."`
	Max    uint64 `json:"max" help:"How many at most." limit:"page"`
	Consistency
}

type FilterQuery struct {
	State    string `json:"state" help:"Only jobs in this state." of:"delayed ready reserved dead finished deleted"`
	DueFrom  string `json:"due_from"`
	DueTo    string `json:"due_to"`
	DiedFrom string `json:"died_from"`
	DiedTo   string `json:"died_to"`
	IDPrefix string `json:"id_prefix"`
	Reason   string `json:"reason"`
}

type ListQuery struct {
	FilterQuery
	ExactReason string            `json:"exact_reason"`
	Header      map[string]string `json:"header." help:"Only jobs with this header, such as header.order=5; several: with all of them. For programs an object, each member of which is a parameter of its own."`
	Cursor      string            `json:"cursor" help:"The next of the page before."`
	Max         uint64            `json:"max" help:"How many at most." limit:"page"`
	Body        bool              `json:"body" help:"Whether the page has the bodies of the jobs."`
	Consistency
}

type JobsQuery struct {
	Topic string `json:"topic"`
	ListQuery
}

type FoundQuery struct {
	Topic string `json:"topic"`
	FilterQuery
	Header map[string]string `json:"header." help:"Only jobs with this header, such as header.order=5; several: with all of them. For programs an object, each member of which is a parameter of its own."`
	Max    uint64            `json:"max" help:"How many jobs at most; or give all." limit:"kick"`
	All    bool              `json:"all"`
	Cursor string            `json:"cursor" help:"The next of the page before."`
}

type ConditionQuery struct {
	IfRevision uint64 `json:"if_revision"`
	IfState    string `json:"if_state" help:"Only if the job is in one of these states, separated by commas."`
}

type DeleteQuery struct {
	Token string `json:"token"`
	ConditionQuery
}

type GetQuery struct {
	Body bool `json:"body" help:"Whether the page has the bodies of the jobs."`
	Consistency
}

type StreamQuery struct {
	Topics    string  `json:"topics" required:"topics" help:"Names of topics, separated by commas."`
	Credit    uint64  `json:"credit"`
	Max       uint64  `json:"max" help:"How many jobs the stream gives at most; no limit unless given." limit:"count"`
	TTR       float64 `json:"ttr"`
	Heartbeat float64 `json:"heartbeat"`
	OnClose   string  `json:"on_close"`
	Consumer  string  `json:"consumer"`
}

type ForecastQuery struct {
	Start string `json:"start" help:"When the first step begins, rounded down to a minute: RFC 3339 text or milliseconds since 1970; the present step unless given, as hours and days begin in UTC."`
	Step  Step   `json:"step" help:"How long a step is: minute, hour or day, or a number of seconds that is a multiple of 60; hour unless given."`
	Steps uint64 `json:"steps" help:"How many steps; 24 unless given. They cover at most 400 days." limit:"steps"`
	Consistency
}

type DueTopicsQuery struct {
	Start string `json:"start" help:"When the first step begins, rounded down to a minute: RFC 3339 text or milliseconds since 1970; the present step unless given, as hours and days begin in UTC."`
	Step  Step   `json:"step" help:"How long a step is: minute, hour or day, or a number of seconds that is a multiple of 60; hour unless given."`
	Max   uint64 `json:"max" help:"How many at most." limit:"page"`
	Consistency
}

type DeadQuery struct {
	Max uint64 `json:"max" help:"How many at most." limit:"page"`
	Consistency
}

type DeadTopicsQuery struct {
	ExactReason string `json:"exact_reason" required:"exact_reason"`
	Max         uint64 `json:"max" help:"How many at most." limit:"page"`
	Consistency
}

type PreviewQuery struct {
	Max   uint64 `json:"max" help:"How many runs; 10 unless given." limit:"preview"`
	Count uint64 `json:"count" help:"The old name of max." limit:"preview"`
}

type BackupQuery struct {
	Rate string `json:"rate" help:"At most so many bytes of the backup a second. The lowest rate is the higher of 65536 and what ends it within 12 hours." limit:"backup rate"`
	Consistency
}

type RestoreQuery struct {
	FromNow bool   `json:"from_now" help:"Whether every delay is longer by the time since the backup."`
	Auth    string `json:"auth" help:"keep: the tokens of the running cluster stay; reset: there are none afterwards." of:"keep reset"`
	DryRun  bool   `json:"dry_run" help:"Only checks the backup and counts; nothing changes."`
	Cluster string `json:"cluster" help:"The id that the cluster must have, as a safeguard."`
}

type LogQuery struct {
	Index   string `json:"index" required:"index" help:"The last entry of the log that the standby has."`
	Term    string `json:"term" required:"term" help:"The term of that entry."`
	Cluster string `json:"cluster" required:"cluster" help:"The id of the cluster whose log it is."`
}

type EventsQuery struct {
	From uint64 `json:"from" help:"Only events from this number on. A number that the node has not reached is one of an earlier run: then all are listed." limit:"positive"`
}

// AddHeaders are those of an add.
type AddHeaders struct {
	IdempotencyKey string `json:"Idempotency-Key" help:"The id of the job, if the request has none."`
	TraceHeaders
}

// TraceHeaders are those of calls that add jobs.
type TraceHeaders struct {
	TraceParent string `json:"traceparent" help:"The trace context of the caller, by W3C Trace Context: it becomes a header of each job that is added. One that is invalid is ignored."`
	TraceState  string `json:"tracestate" help:"What belongs to traceparent."`
}
