package wire

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// Field is one field of a request, a reply, a query or the headers of a call.
type Field struct {
	Name     string // in JSON
	Type     reflect.Type
	Required bool // in a request
	Optional bool // in a reply
	Doc
}

// Doc is what a field means: with its unit, and its range if it has one.
type Doc struct {
	Help        string
	Least, Most *float64
	Choices     []string
	Bytes       int // of a text, or of each text of a list, at most
	Items       int // of a list, at most; lists of requests know it themselves
}

// Fields returns the fields of a type, those of embedded types included. Their tags are:
//
//   - json: the name; with omitzero, a reply may leave it out
//   - help: what it means, limit: a row of limits, of: the texts that it may have; without help,
//     the row of its name in shared has these
//   - required: names it, if a request must have it
//
// On an embedded type, required names fields of it, and the tags NAME and NAME.limit stand for help
// and limit of its field NAME.
func Fields(t reflect.Type) []Field {
	var made []Field
	var required []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		required = append(required, strings.Fields(f.Tag.Get("required"))...)
		switch {
		case f.Anonymous && name == "":
			for _, in := range Fields(f.Type) {
				if help, ok := f.Tag.Lookup(in.Name); ok {
					in.Doc = limits[f.Tag.Get(in.Name+".limit")]
					in.Help = help
				}
				in.Required = false
				made = append(made, in)
			}
		case name != "":
			made = append(made, Field{Name: name, Type: f.Type, Optional: options != "", Doc: docOf(name, f.Tag)})
		}
	}
	for i := range made {
		made[i].Required = slices.Contains(required, made[i].Name)
	}
	return made
}

// Names returns the names of the fields of v.
func Names(v any) (names []string) {
	if v == nil {
		return nil
	}
	for _, f := range Fields(reflect.TypeOf(v)) {
		names = append(names, f.Name)
	}
	return names
}

// docOf reads the tags of a field.
func docOf(name string, tag reflect.StructTag) Doc {
	help, own := tag.Lookup("help")
	if !own {
		if tag, own = shared[name]; !own {
			panic("api/wire: the field " + name + " has no help")
		}
		help = tag.Get("help")
	}
	row := tag.Get("limit")
	d, found := limits[row]
	if !found && row != "" {
		panic("api/wire: there is no limit " + row)
	}
	d.Help = help
	if of := tag.Get("of"); of != "" {
		d.Choices = strings.Fields(of)
	}
	return d
}

// Shared returns what a field of the name means in most types.
func Shared(name string) Doc { return docOf(name, "") }

// InPath says what the parameters in paths are.
var InPath = map[string]Doc{
	"id":        {Help: "The id of the job, percent-encoded, or of the token, or the name of the node."},
	"key":       {Help: "The fingerprint of the key."},
	"name":      {Help: "The name of the schedule, percent-encoded."},
	"namespace": {Help: "The name of a namespace.", Bytes: job.MaxNamespaceNameBytes},
	"topic":     {Help: "The name of the topic, percent-encoded."},
}

func between(least, most float64) Doc { return Doc{Least: &least, Most: &most} }
func oneOf(choices ...string) Doc     { return Doc{Choices: choices} }
func upTo(bytes int) Doc              { return Doc{Bytes: bytes} }

func (d Doc) ofUpTo(items int) Doc { d.Items = items; return d }

var (
	anyCount = math.Inf(1)
	maxDelay = job.MaxDelay.Seconds()
	maxTTR   = job.MaxTTR.Seconds()
	base64Of = (job.HardMaxBodyBytes + 2) / 3 * 4 // bytes of the longest body
)

// The words of requests and replies, by what they stand for.
var (
	AdmissionNames = []string{jobpb.AdmissionMode_ADMISSION_OPEN: "open", jobpb.AdmissionMode_ADMISSION_INVITED: "invited"}
	ModeNames      = []string{jobpb.AuthMode_AUTH_OFF: "off", jobpb.AuthMode_AUTH_REPORT: "report", jobpb.AuthMode_AUTH_ENFORCE: "enforce"}
	OverlapNames   = []string{jobpb.Overlap_OVERLAP_ALLOW: "allow", jobpb.Overlap_OVERLAP_SKIP: "skip"}
	MissedNames    = []string{jobpb.Missed_MISSED_SKIP: "skip", jobpb.Missed_MISSED_ONE: "one", jobpb.Missed_MISSED_ALL: "all"}
	StandbyModes   = []string{jobpb.StandbyMode_STANDBY_NEVER: "none", jobpb.StandbyMode_STANDBY_FOLLOWING: "following", jobpb.StandbyMode_STANDBY_PROMOTED: "promoted"}
	LogLevels      = []string{"debug", "info", "warn", "error"} // as of --log-level
)

const (
	MinHeartbeat = time.Second
	MaxHeartbeat = 5 * time.Minute

	MaxPage    = 1000 // items of a page
	MaxPreview = 100  // runs
)

// limits are what fields may have.
var limits = map[string]Doc{
	"admission":     oneOf(AdmissionNames...),
	"backup rate":   between(job.MinBackupRate, job.MaxBackupRate),
	"base64":        upTo(base64Of),
	"concurrency":   between(1, job.MaxPushConcurrency),
	"consumer":      upTo(job.MaxConsumerBytes),
	"count":         between(1, anyCount),
	"dead reason":   upTo(job.DeadReasonBytes),
	"delay":         between(0, maxDelay),
	"description":   upTo(job.MaxDescriptionBytes),
	"factor":        between(1, 100),
	"fraction":      between(0, 1),
	"heartbeat":     between(MinHeartbeat.Seconds(), MaxHeartbeat.Seconds()),
	"import delay":  between(0, (job.MaxDelay + job.MaxSpread).Seconds()),
	"invitation":    between(1, job.MaxInvitationTime.Seconds()),
	"jitter":        between(0, job.MaxJitter.Seconds()),
	"kick":          between(1, job.MaxKick),
	"level":         oneOf(LogLevels...),
	"missed":        oneOf(MissedNames...),
	"missed after":  between(0.001, job.MaxMissedAfter.Seconds()),
	"mode":          oneOf(ModeNames...),
	"name":          upTo(job.MaxNameBytes),
	"namespace":     upTo(job.MaxNamespaceNameBytes),
	"overlap":       oneOf(OverlapNames...),
	"page":          between(1, MaxPage),
	"patterns":      upTo(job.MaxNameBytes).ofUpTo(job.MaxTokenPatterns),
	"pause":         between(0.001, maxDelay),
	"positive":      between(0, anyCount),
	"postpone":      between(1, maxDelay),
	"preview":       between(1, MaxPreview),
	"push timeout":  between(job.MinPushTimeout.Seconds(), job.MaxPushTimeout.Seconds()),
	"quota":         between(0, MaxQuota),
	"rate":          between(0.001, job.MaxRateMilli/1000),
	"reason":        upTo(job.MaxReasonBytes),
	"reserve":       between(1, job.MaxReserve),
	"run key":       upTo(job.MaxRunKeyBytes),
	"runs":          between(1, job.MaxScheduleRuns),
	"schedule":      upTo(job.MaxScheduleNameBytes),
	"secret":        upTo(job.MaxPushSecretBytes),
	"spec":          upTo(job.MaxSpecBytes),
	"standby":       oneOf(StandbyModes...),
	"steps":         between(1, job.MaxForecastSteps),
	"token":         upTo(job.MaxTokenIDBytes),
	"token bytes":   between(1, job.MaxTokenBytes),
	"token overlap": between(0, job.MaxTokenOverlap.Seconds()),
	"ttr":           between(0.001, maxTTR),
	"uint32":        between(0, math.MaxUint32),
	"uint32 from 1": between(1, math.MaxUint32),
	"url":           upTo(job.MaxPushURLBytes),
	"verbs":         oneOf(auth.VerbNames()...).ofUpTo(len(auth.VerbNames())),
	"wait":          between(0, job.MaxWait.Seconds()),
}

// shared are the tags of fields that mean the same in several types.
var shared = map[string]reflect.StructTag{
	"all":                 `help:"All jobs instead of max."`,
	"anonymous":           `help:"The rules of what is allowed without a token."`,
	"at":                  `help:"When it happened."`,
	"backoff":             `help:"How long the job waits after a failed attempt."`,
	"base":                `help:"The first wait, in seconds." limit:"delay"`,
	"body":                `help:"The body of the job: any JSON value, returned as it was sent."`,
	"body_base64":         `help:"Instead of body, bytes that are not UTF-8, in standard base64 with padding." limit:"base64"`,
	"cluster_version":     `help:"The version of the replicated state."`,
	"code":                `help:"What failed, for programs; docs/http-api.md lists them."`,
	"concurrency":         `help:"How many posts at a time." limit:"concurrency"`,
	"consumer":            `help:"The name of the consumer, at most 64 bytes." limit:"consumer"`,
	"count":               `help:"How many jobs it is about."`,
	"created_at":          `help:"When it was created."`,
	"credit":              `help:"How many unfinished jobs the client holds at most." limit:"reserve"`,
	"dead":                `help:"Jobs that are dead."`,
	"delay":               `help:"How long until the job is due, in seconds." limit:"delay"`,
	"delayed":             `help:"Jobs that are delayed."`,
	"delays":              `help:"Waits in seconds, one for each failed attempt; the last one repeats." limit:"delay"`,
	"deleted":             `help:"Jobs deleted."`,
	"description":         `help:"For people, at most 200 bytes." limit:"description"`,
	"died_from":           `help:"Jobs that died then or later."`,
	"died_to":             `help:"Jobs that died before."`,
	"due_at":              `help:"When the job becomes or became ready. In a request, RFC 3339 text or milliseconds since 1970."`,
	"due_from":            `help:"Jobs that are due then or later."`,
	"due_to":              `help:"Jobs that are due before."`,
	"end":                 `help:"It does not run after."`,
	"ended":               `help:"Whether the job that was there before is dead, finished or deleted: this add makes nothing run."`,
	"error":               `help:"What failed, for people: at most 1000 bytes."`,
	"exact_reason":        `help:"The whole reason of the job, or else its last error, cut to 200 bytes as in GET /v1/dead; empty: none was given." limit:"dead reason"`,
	"example":             `help:"The id of one of the jobs: of a topic the one that died first."`,
	"existing":            `help:"Whether the same was there before, and nothing was created."`,
	"expires_at":          `help:"When the job is dropped, or dead if its topic says so, unless somebody has it then. In a request, RFC 3339 text or milliseconds since 1970."`,
	"factor":              `help:"By how much each wait is longer than the one before." limit:"factor"`,
	"field":               `help:"The field of the request, or the query parameter, that is at fault."`,
	"filter":              `help:"Only jobs that match all of its fields."`,
	"first_died_at":       `help:"When the first of the jobs died."`,
	"headers":             `help:"Names and values that go with the job: at most 64, of 8 KiB together."`,
	"heartbeat":           `help:"How long the stream is silent at most, in seconds." limit:"heartbeat"`,
	"id":                  `help:"The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes." limit:"name"`,
	"id_prefix":           `help:"Jobs whose id begins with it." limit:"name"`,
	"if_exists":           `help:"What to do when the id is taken; conflict unless given." of:"conflict keep replace replace_ended postpone"`,
	"if_revision":         `help:"Only if it has this revision." limit:"uint32"`,
	"if_state":            `help:"Only if the job is in one of these states." of:"delayed ready reserved dead finished deleted"`,
	"incomplete":          `help:"Whether jobs may be missing, because a topic's index of the header is being built."`,
	"jitter":              `help:"By how much waits differ at random, as a fraction." limit:"fraction"`,
	"job":                 `help:"The job that each run adds."`,
	"job_urls":            `help:"Whether jobs may have a push_url; false unless given."`,
	"jobs":                `help:"The jobs."`,
	"kicked":              `help:"Jobs brought back."`,
	"late":                `help:"How long the job waited after it was due, in seconds; of a cause, how much of that is its." limit:"positive"`,
	"leader":              `help:"The node that leads; empty: none is known."`,
	"limits":              `help:"What the token may use on each node; absent: no limit."`,
	"max_attempts":        `help:"Attempts after which the job is dead; 0 is no limit." limit:"uint32"`,
	"max_cluster_version": `help:"The newest version of the state that it can run."`,
	"min_cluster_version": `help:"The oldest version of the state that it can run."`,
	"missed":              `help:"What happens to runs that were missed." limit:"missed"`,
	"missed_after":        `help:"By how much a run may be late before it counts as missed, in seconds." limit:"missed after"`,
	"missed_max":          `help:"How many missed runs are made up for." limit:"runs"`,
	"mode":                `help:"What becomes of a call that nothing allows: nothing is checked, it is done and counted, or it is refused." limit:"mode"`,
	"more":                `help:"Whether there are more jobs: repeat the call."`,
	"next":                `help:"Where the next page begins; absent on the last one."`,
	"node":                `help:"The name of the node."`,
	"on_close":            `help:"What happens to unfinished jobs when the connection ends." of:"keep release"`,
	"outcome":             `help:"Whether a failed call was done: not_applied is certainly not, unknown may be." of:"not_applied unknown"`,
	"overlap":             `help:"What happens when a run is due while the job of the run before exists." limit:"overlap"`,
	"paused":              `help:"Whether it is paused."`,
	"paused_until":        `help:"When the pause ends; absent for one without end."`,
	"planned_at":          `help:"When the run is, or was, planned."`,
	"postponed":           `help:"Whether the existing job got the due time of this add."`,
	"priority":            `help:"The smallest is handed out first." limit:"uint32"`,
	"push_url":            `help:"Where the job is posted instead of the URL of its topic, whose push must have job_urls; up to 2000 bytes. In a change, an empty one removes it." limit:"url"`,
	"quotas":              `help:"What the namespace may hold. What is not given is not bounded."`,
	"ready":               `help:"Jobs that are ready."`,
	"reason":              `help:"Why, in the consumer's words: at most 1000 bytes." limit:"reason"`,
	"reasons":             `help:"What is wrong."`,
	"replaced":            `help:"Whether it took the place of an earlier one."`,
	"reserved":            `help:"Jobs that are reserved."`,
	"reserved_until":      `help:"When the reservation expires."`,
	"results":             `help:"One result for each item, in their order."`,
	"retained":            `help:"Finished and deleted jobs that are retained."`,
	"revision":            `help:"It grows with every change."`,
	"rules":               `help:"What is allowed: at most 64 rules."`,
	"runs":                `help:"The runs."`,
	"schedule":            `help:"The name of the schedule, 1 to 150 bytes." limit:"schedule"`,
	"seq":                 `help:"The number of the job, in the order of the adds."`,
	"spec":                `help:"When it runs: a cron expression, @daily and the like, or @every 90s." limit:"spec"`,
	"start":               `help:"It does not run before."`,
	"started_at":          `help:"When the process started."`,
	"state":               `help:"The state of the job; gone: it does not exist any more." of:"delayed ready reserved dead finished deleted gone"`,
	"success":             `help:"Whether the call succeeded; in a batch, whether every item did."`,
	"text":                `help:"The same in words."`,
	"timeout":             `help:"How long a post may take, in seconds." limit:"push timeout"`,
	"to_topic":            `help:"The topic that the job goes to; its own unless given." limit:"name"`,
	"token":               `help:"Names one reservation of a job."`,
	"topic":               `help:"The name of the topic, 1 to 200 bytes." limit:"name"`,
	"topic_prefix":        `help:"The topics whose names begin with it are in the namespace. It may not begin with that of another namespace." limit:"name"`,
	"topics":              `help:"The topics."`,
	"ttr":                 `help:"How long a reservation lasts, in seconds." limit:"ttr"`,
	"url":                 `help:"The HTTP target; values in its query are not shown." limit:"url"`,
	"value":               `help:"The body of the job, or null."`,
	"value_base64":        `help:"Instead of value, bytes that are not UTF-8, in standard base64 with padding."`,
	"voter":               `help:"Whether it votes."`,
	"warnings":            `help:"What may become wrong."`,
	"zone":                `help:"The time zone, as in the tz database; UTC unless given." limit:"spec"`,
}
