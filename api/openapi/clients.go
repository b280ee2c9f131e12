package openapi

import (
	"reflect"
	"strings"

	"tarry/api/wire"
	"tarry/job"
)

// A clientType is a type of the clients: it has the fields of a type of package wire.
type clientType struct {
	name string
	of   any
	// always are the fields without which a reply is not from Tarry. Only what each release gives is here.
	always string
	doc    string
}

// clientTypes are in an order in which each comes after those of its single fields.
var clientTypes = []clientType{
	{"Added", wire.Added{}, "id seq state", "What became of an add."},
	{"Changed", wire.Changed{}, "id state", "What became of a job."},
	{"Job", wire.Job{}, "id topic state", "Everything known of a job."},
	{"ReservedJob", wire.Reserved{}, "id token", "A job that was handed out to the caller."},
	{"History", wire.History{}, "id events", "What happened to a job."},
	{"HistoryEvent", wire.Event{}, "event", "One thing that happened to a job."},
	{"Explanation", wire.Explanation{}, "id text causes", "Why a job is not delivered yet, or was delivered late."},
	{"Cause", wire.Cause{}, "cause", "A reason why a job is not delivered yet, or was late."},
	{"Topic", wire.Topic{}, "topic ready paused", "The counts of a topic: its jobs by state now, and totals."},
	{"Stats", wire.Stats{}, "topics ready", "The counts of all topics together."},
	{"Forecast", wire.Forecast{}, "start step jobs", "How many delayed jobs are due in each step of time."},
	{"DueTopics", wire.DueTopics{}, "start step jobs topics", "The topics of which most delayed jobs are due in one step of time."},
	{"DueTopic", wire.DueTopic{}, "topic jobs", "A topic with how many of its jobs are due."},
	{"Rates", wire.Rates{}, "step added", "What happened to jobs in each step of the last 15 minutes, oldest first; the last number is of the step under way."},
	{"DeadReasons", wire.DeadReasons{}, "jobs groups", "Dead jobs grouped by reason, the largest group first."},
	{"DeadReason", wire.DeadReason{}, "reason jobs", "The dead jobs with one reason."},
	{"DeadTopics", wire.DeadTopics{}, "reason jobs groups", "Dead jobs with one reason grouped by topic, the largest group first."},
	{"DeadTopic", wire.DeadTopic{}, "topic jobs", "The dead jobs of one topic with that reason."},
	{"Rescheduled", wire.Rescheduled{}, "count", "What became of due times. `more`: call again with `next` as cursor."},
	{"TopicSettings", wire.TopicSettings{}, "revision settings", "The settings of a topic, and their revision, 0 when there are none."},
	{"Settings", wire.Settings{}, "", "docs/limits.md explains them."},
	{"Pause", wire.Pause{}, "paused", "How a topic stands after a pause or resume."},
	{"ScheduleInfo", wire.Schedule{}, "schedule spec", "A recurring job (docs/schedules.md)."},
	{"ScheduleCounts", wire.ScheduleCounts{}, "", "How many runs of a schedule there were."},
	{"SchedulePut", wire.SchedulePut{}, "schedule revision", "What became of a schedule."},
	{"PlannedRun", wire.PlannedRun{}, "planned_at", "A time at which a schedule runs."},
	{"PastRun", wire.Run{}, "outcome", "What became of a run."},
	{"Member", wire.Member{}, "id", "A node of the cluster."},
	{"Rule", wire.Rule{}, "topics verbs", "Allows verbs on topics (docs/tokens.md)."},
	{"Token", wire.Token{}, "id revision rules", "A token without its text, which is stored nowhere."},
	{"TokenLimits", wire.TokenLimits{}, "", "What a token may use on each node."},
	{"TokenPut", wire.TokenPut{}, "id revision", "What became of a token."},
	{"Identity", wire.WhoAmI{}, "mode rules", "Who the client is for the cluster, and what it may do."},
	{"Quotas", wire.NamespaceQuotas{}, "", "What a namespace may hold; what is missing is not bounded."},
	{"NamespaceUse", wire.NamespaceUse{}, "jobs bytes topics", "What a namespace holds."},
	{"Namespace", wire.Namespace{}, "name revision topic_prefix", "A namespace, and what it holds (docs/namespaces.md)."},
	{"NamespacePut", wire.NamespacePut{}, "name revision", "What became of a namespace."},
	{"Health", wire.Health{}, "healthy", "The cluster's state for an operator."},
	{"Problem", wire.Problem{}, "", "What is wrong with the cluster, or soon will be."},
	{"Clocks", wire.Clocks{}, "max_offset clocks", "The clocks of the nodes, as the leader sees them (docs/operations.md)."},
	{"NodeClock", wire.Clock{}, "id", "One node's clock."},
	{"Verification", wire.Verification{}, "equal digests", "Whether the states of all nodes are equal at one index of the log."},
	{"NodeDigest", wire.Digest{}, "id", "The digest of one node's state, or why there is none."},
}

// fields are the fields of a type of package wire, those of its tables included. The clients have one body.
func (c *clientType) fields() (fields []wire.Field) {
	switch c.of.(type) {
	case wire.Job:
		for _, f := range job.Fields {
			fields = append(fields, wire.Field{
				Name: f.Name, Type: jobKinds[f.Type], Optional: f.Optional || f.In != 0, Doc: wire.Doc{Help: sentence(f.Help)},
			})
		}
		body := wire.Field{Name: "body", Type: reflect.TypeFor[wire.Any](), Optional: true, Doc: wire.Shared("body")}
		body.Help += " Absent in lists without bodies."
		return append(fields, body)
	case wire.Settings:
		for _, s := range job.Settings {
			fields = append(fields, wire.Field{
				Name: s.Name, Type: settingKinds[s.Type], Optional: true,
				Doc: wire.Doc{Help: sentence(s.Help) + " Without it: " + plainHelp(s.Default) + ".", Choices: s.Choices},
			})
		}
		return fields
	}
	for _, f := range wire.Fields(reflect.TypeOf(c.of)) {
		if f.Name != "body_base64" {
			f.Help, _, _ = strings.Cut(f.Help, " In a request,")
			fields = append(fields, f)
		}
	}
	return fields
}

// sentence makes one of a row of a table.
func sentence(help string) string {
	help = plainHelp(help)
	return strings.ToUpper(help[:1]) + help[1:] + "."
}
