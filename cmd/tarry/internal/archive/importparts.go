package archive

import (
	"context"
	"slices"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

// topic imports the settings and the pause of a topic.
func (m *fileImport) topic(ctx context.Context, l *topicLine) (importOutcome, error) {
	outcome := outcomeNone
	if l.Settings != nil {
		var err error
		if outcome, err = m.settings(ctx, l.Topic, *l.Settings); err != nil || outcome == outcomeDifferent {
			return outcome, err
		}
	}
	if !l.Paused {
		return outcome, nil
	}
	until := m.later(l.PausedUntil)
	if !until.IsZero() && !until.After(m.t.Now()) {
		return outcome.or(outcomeExisting), nil // it is over
	}
	t, err := m.t.Client.Topics().Get(ctx, l.Topic)
	switch {
	case err != nil:
		return 0, err
	case t.Paused:
		return outcome.or(outcomeExisting), nil
	case m.flags.dry:
		return outcomeImported, nil
	case until.IsZero():
		_, err = m.t.Client.Topics().Pause(ctx, l.Topic, 0)
	default:
		_, err = m.t.Client.Topics().PauseUntil(ctx, l.Topic, until)
	}
	return outcomeImported, err
}

// settings sets the settings of a topic that has none.
func (m *fileImport) settings(ctx context.Context, topic string, want client.Settings) (importOutcome, error) {
	present, err := m.t.Client.Topics().Settings(ctx, topic)
	if err != nil {
		return 0, err
	}
	// A target has a secret, which an export lacks. Without it nothing must be posted.
	if want.Push != nil && present.Settings.Push == nil {
		want.Push = nil
		if !slices.Contains(m.next.Report.NeedSecrets, topic) {
			m.next.Report.NeedSecrets = append(m.next.Report.NeedSecrets, topic)
		}
	}
	difference, err := firstDifference(present.Settings, want)
	switch {
	case err != nil:
		return 0, err
	case difference == "":
		return outcomeExisting, nil
	case present.Revision != 0:
		m.differs(m.in.Line, "topic %q has other settings: %s", topic, difference)
		return outcomeDifferent, nil
	case m.flags.dry:
		return outcomeImported, nil
	}
	_, err = m.t.Client.Topics().SetSettings(ctx, topic, want, present.Revision)
	return outcomeImported, err
}

// namespace makes a namespace that is not there.
func (m *fileImport) namespace(ctx context.Context, l *namespaceLine) (importOutcome, error) {
	present, err := m.t.Client.Namespaces().Get(ctx, l.Name)
	switch {
	case err != nil && !cli.IsMissing(err):
		return 0, err
	case err == nil:
		difference, err := firstDifference(present.NamespaceSpec, l.NamespaceSpec)
		if err != nil || difference == "" {
			return outcomeExisting, err
		}
		m.differs(m.in.Line, "namespace %q is another one: %s", l.Name, difference)
		return outcomeDifferent, nil
	}
	m.prefixes = append(m.prefixes, client.Namespace{Name: l.Name, NamespaceSpec: l.NamespaceSpec})
	if m.flags.dry {
		return outcomeImported, nil
	}
	_, err = m.t.Client.Namespaces().Put(ctx, l.Name, l.NamespaceSpec, 0)
	return outcomeImported, err
}

// schedule makes a schedule that is not there. A paused one must not run in between, so it is
// made as a paused one.
func (m *fileImport) schedule(ctx context.Context, l *scheduleLine) (importOutcome, error) {
	present, err := m.t.Client.Schedules().Get(ctx, l.Name)
	switch {
	case err != nil && !cli.IsMissing(err):
		return 0, err
	case err == nil:
		difference, err := firstDifference(present.Schedule, l.Schedule)
		if err != nil || difference == "" {
			return outcomeExisting, err
		}
		m.differs(m.in.Line, "schedule %q is another one: %s", l.Name, difference)
		return outcomeDifferent, nil
	case m.flags.dry:
		return outcomeImported, nil
	case l.Paused:
		_, err = m.t.Client.Schedules().PutPaused(ctx, l.Name, l.Schedule, 0)
	default:
		_, err = m.t.Client.Schedules().Put(ctx, l.Name, l.Schedule, 0)
	}
	return outcomeImported, err
}
