package api

import (
	"context"
	"errors"
	"maps"
	"slices"

	"tarry/api/wire"
	"tarry/auth"
	"tarry/internal/secretkeys"
	"tarry/job"
	"tarry/job/jobpb"
)

// sealPush seals the secret of a push target that is about to be set, if this node has keys. From
// here on neither the log nor a disk has it in plain.
func (s *server) sealPush(op *jobpb.SetTopic) error {
	p := op.GetSettings().GetPush()
	if s.Secrets == nil || p.GetSecret() == "" {
		return nil
	}
	if err := check(&jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: op}}); err != nil {
		return err // of what the client sent, and not of what is made of it
	}
	p.Secret, p.SealedSecret = "", s.Secrets.Seal(op.Topic, p.Secret)
	return nil
}

// pushTopics returns the topics with a push target, whoever calls: who may administer may know
// them.
func (s *server) pushTopics(ctx context.Context) (topics []*jobpb.Topic, err error) {
	ctx = auth.NewContext(ctx, auth.System())
	for after := ""; ; {
		page, err := s.reads.ConfiguredTopics(ctx, after, job.MaxList, false)
		if err != nil {
			return nil, err
		}
		for _, t := range page {
			if t.Settings.GetPush() != nil {
				topics = append(topics, t)
			}
		}
		if len(page) < job.MaxList {
			return topics, nil
		}
		after = page[len(page)-1].Name
	}
}

// secrets handles GET /v1/secrets.
func (s *server) secrets(x *call) (r wire.SecretKeys, err error) {
	ctx, cancel := x.timeout(s.OperatorTimeout)
	defer cancel()
	topics, err := s.pushTopics(ctx)
	if err != nil {
		return r, err
	}
	plain, used := uint64(0), map[string]uint64{}
	for _, t := range topics {
		if p := t.Settings.Push; len(p.SealedSecret) == 0 {
			plain++
		} else {
			used[secretkeys.KeyOf(p.SealedSecret)]++
		}
	}
	held := s.Secrets.IDs()
	ids := slices.Clone(held)
	for _, id := range slices.Sorted(maps.Keys(used)) {
		if !slices.Contains(held, id) {
			ids = append(ids, id)
		}
	}
	r.Plain = plain
	r.Keys = each(ids, func(id string) wire.SecretKey {
		return wire.SecretKey{ID: id, Topics: used[id], Held: slices.Contains(held, id), Seals: len(held) > 0 && id == held[0]}
	})
	return r, nil
}

// rewrapSecrets handles POST /v1/secrets/rewrap: it seals with the first key of this node what is
// plain, or sealed with another one. It can be repeated.
func (s *server) rewrapSecrets(x *call) (r wire.Rewrapped, err error) {
	if s.Secrets == nil {
		return r, job.Errorf(job.CodeConflict, "this node has no keys for secrets: start it with --secrets-key-file, or use a node that has them")
	}
	ctx, cancel := x.timeout(s.OperatorTimeout)
	defer cancel()
	topics, err := s.pushTopics(ctx)
	if err != nil {
		return r, err
	}
	for _, t := range topics {
		changed, err := s.rewrap(ctx, t)
		switch {
		case ctx.Err() != nil:
			return r, job.Unknown("the secrets of the first %d topics were sealed; repeat the call", r.Rewrapped)
		case err != nil:
			if r.Failed++; r.Failed == 1 {
				r.Reason = "topic " + t.Name + ": " + err.Error()
			}
		case changed:
			r.Rewrapped++
		default:
			r.Unchanged++
		}
	}
	r.Reason = brief(r.Reason)
	return r, nil
}

// rewrap seals the secret of one topic. Settings that were changed meanwhile are read again.
func (s *server) rewrap(ctx context.Context, t *jobpb.Topic) (changed bool, err error) {
	for range patchTries {
		p := t.Settings.GetPush()
		if p == nil {
			return false, nil // it was removed
		}
		secret := p.Secret
		if len(p.SealedSecret) > 0 {
			if secret, err = s.Secrets.Open(t.Name, p.SealedSecret); err != nil {
				return false, unopened(err)
			}
		}
		sealed := s.Secrets.Seal(t.Name, secret)
		if slices.Equal(sealed, p.SealedSecret) {
			return false, nil
		}
		p.Secret, p.SealedSecret = "", sealed
		_, err = doOne(ctx, s.Queue, &jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{
			Topic: t.Name, Settings: t.Settings, IfRevision: new(t.Settings.Revision),
		}}})
		if job.CodeOf(err) != job.CodeConditionFailed {
			return err == nil, err
		}
		if t, err = s.reads.Topic(auth.NewContext(ctx, auth.System()), t.Name, false); err != nil {
			return false, err
		}
	}
	return false, job.NotApplied("its settings were changed by others %d times meanwhile", patchTries)
}

// unopened is the error, for the client, of a secret that this node cannot open.
func unopened(err error) error {
	if errors.Is(err, secretkeys.ErrNoKey) || errors.Is(err, secretkeys.ErrDamaged) {
		return job.Errorf(job.CodeConflict, "its secret cannot be opened: %w", err)
	}
	return err
}
