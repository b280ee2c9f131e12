package clienttest

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
	"tarry/job"
)

func TestSettingsOfATopic(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	set, err := c.Topics().SetSettings(ctx, "a/b", client.Settings{MaxPending: new(uint64(1))}, 0)
	require.NoError(t, err)
	require.Equal(t, client.TopicSettings{Topic: "a/b", Revision: 1, Settings: client.Settings{MaxPending: new(uint64(1))}}, set)
	_, err = c.Topics().SetSettings(ctx, "a/b", client.Settings{}, 0)
	require.ErrorIs(t, err, client.CodeConditionFailed)

	mustAdd(t, c, client.NewJob{Topic: "a/b", Body: client.Text("1")})
	_, err = c.Add(ctx, client.NewJob{Topic: "a/b", Body: client.Text("2")})
	require.ErrorIs(t, err, client.CodeTopicFull)

	refuse := client.Settings{LateFinish: "refuse", RequireToken: true}
	who, err := c.Topics().SetSettings(ctx, "tokens", refuse, 0)
	require.NoError(t, err)
	require.Equal(t, refuse, who.Settings)
	_, err = c.Topics().SetSettings(ctx, "tokens", client.Settings{}, 1)
	require.NoError(t, err)

	changed, err := c.Topics().ChangeSettings(ctx, "a/b", client.Settings{MaxPending: new(uint64(0))})
	require.NoError(t, err)
	require.EqualValues(t, 2, changed.Revision)
	got, err := c.Topics().Settings(ctx, "a/b")
	require.NoError(t, err)
	require.Equal(t, changed, got)
	topic, err := c.Topics().Get(ctx, "a/b")
	require.NoError(t, err)
	require.EqualValues(t, 2, topic.SettingsRevision)
	all, err := client.Collect(c.Topics().AllSettings(ctx, client.PageOptions{Size: 1}))
	require.NoError(t, err)
	require.Equal(t, []client.TopicSettings{got}, all)
	changed, err = c.Topics().ChangeSettings(ctx, "a/b", client.Settings{Expire: client.Duration{Duration: time.Hour}})
	require.NoError(t, err)
	require.Equal(t, client.Settings{MaxPending: new(uint64(0)), Expire: client.Duration{Duration: time.Hour}, Expiry: "drop"}, changed.Settings)
	changed, err = c.Topics().ChangeSettings(ctx, "a/b", client.Settings{}, "max_pending", "expire", "expiry")
	require.NoError(t, err)
	require.Zero(t, changed.Revision)

	_, err = c.Topics().SetSettings(ctx, "a/b", refuse, 0)
	require.NoError(t, err)
	_, err = c.Topics().DeleteSettings(ctx, "a/b", 7)
	require.ErrorIs(t, err, client.CodeConditionFailed)
	changed, err = c.Topics().DeleteSettings(ctx, "a/b", client.AnyRevision)
	require.NoError(t, err)
	require.Equal(t, client.TopicSettings{Topic: "a/b"}, changed)
}

func TestTheClientHasAllSettings(t *testing.T) {
	var names, has []string
	for _, s := range job.Settings {
		names = append(names, s.Name)
	}
	for f := range reflect.TypeFor[client.Settings]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		has = append(has, name)
	}
	require.ElementsMatch(t, names, has)
}

// The client's Job has the fields of the table, in their order and as they are left out.
func TestTheClientHasAllFieldsOfAJob(t *testing.T) {
	types := map[job.FieldType]reflect.Type{
		job.FieldText: reflect.TypeFor[string](), job.FieldState: reflect.TypeFor[client.State](),
		job.FieldInstant: reflect.TypeFor[time.Time](), job.FieldDuration: reflect.TypeFor[client.Duration](),
		job.FieldBackoff: reflect.TypeFor[*client.Backoff](), job.FieldHeaders: reflect.TypeFor[map[string]string](),
	}
	rows := job.Fields
	for f := range reflect.TypeFor[client.Job]().Fields() {
		if f.Anonymous {
			continue // the body
		}
		require.NotEmpty(t, rows, f.Name)
		row := rows[0]
		rows = rows[1:]
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		require.Equal(t, row.Name, name)
		require.Equal(t, row.Optional, options != "", name)
		if row.Type != job.FieldNumber {
			require.Equal(t, types[row.Type], f.Type, name)
		}
	}
	require.Empty(t, rows)
}

func TestAPausedTopicHandsNothingOut(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	mustAdd(t, c, client.NewJob{Topic: "t", Body: client.Text("1")})
	p, err := c.Topics().Pause(ctx, "t", 0)
	require.NoError(t, err)
	require.Equal(t, client.Pause{Topic: "t", Paused: true}, p)
	jobs := mustReserve(t, c, "t")
	require.Empty(t, jobs)
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	p, err = c.Topics().PauseUntil(ctx, "t", end)
	require.NoError(t, err)
	require.Equal(t, client.Pause{Topic: "t", Paused: true, Until: end}, p)
	p, err = c.Topics().Pause(ctx, "t", 2*time.Hour)
	require.NoError(t, err)
	require.True(t, p.Until.After(end))
	topic, err := c.Topics().Get(ctx, "t")
	require.NoError(t, err)
	require.Equal(t, p, client.Pause{Topic: "t", Paused: topic.Paused, Until: topic.PausedUntil})
	p, err = c.Topics().Resume(ctx, "t")
	require.NoError(t, err)
	require.Equal(t, client.Pause{Topic: "t"}, p)
	jobs = mustReserve(t, c, "t")
	require.Len(t, jobs, 1)
	_, err = c.Topics().Resume(ctx, "none")
	require.ErrorIs(t, err, client.CodeNotFound)
}
