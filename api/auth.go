package api

import (
	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// whoami handles GET /v1/whoami: who makes the call, and what that may do.
func (s *server) whoami(x *call) (wire.WhoAmI, error) {
	state := s.Access.State()
	r := wire.WhoAmI{Mode: wire.ModeNames[state.Mode()], Rules: rulesShown(state.Settings.Anonymous)}
	if t := state.Token(x.who.Principal.TokenID()); t != nil {
		r.ID, r.Description, r.Rules, r.IDPrefix = t.Id, t.Description, rulesShown(t.Rules), t.IdPrefix
		r.Limits, r.ExpiresAt = limitsShown(t.Limits), wire.Time(t.ExpiresMs)
	}
	return r, nil
}

func (s *server) getAuth(x *call) (r wire.Auth, err error) {
	info, err := s.readAuth(x)
	settings := info.GetSettings()
	return wire.Auth{
		Mode: wire.ModeNames[settings.GetMode()], Anonymous: rulesShown(settings.GetAnonymous()), Revision: settings.GetRevision(),
		Tokens: uint64(info.GetTokens()), Bootstrapped: info.GetBootstrapped(),
	}, err
}

func (s *server) readAuth(x *call) (*jobpb.AuthInfo, error) {
	stale, err := x.stale()
	if err != nil {
		return nil, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	a, err := s.Queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Auth{Auth: &jobpb.Empty{}}}, stale)
	return a.GetAuth(), err
}

// putAuth handles PUT /v1/auth.
func (s *server) putAuth(x *call, q *wire.AuthRequest) (r wire.AuthPut, err error) {
	revision, err := x.queryRevision()
	if err != nil {
		return r, err
	}
	if !q.Mode.Set {
		return r, job.Invalid("mode", "is missing; it takes off, report or enforce")
	}
	mode, err := wire.WordOf("mode", q.Mode, wire.ModeNames)
	if err != nil {
		return r, err
	}
	settings := &jobpb.AuthSettings{Mode: jobpb.AuthMode(mode)}
	if settings.Anonymous, err = wire.RulesOf("anonymous", q.Anonymous.V); err != nil {
		return r, err
	}
	if err := job.CheckAuthSettings(settings); err != nil {
		return r, err
	}
	done, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_SetAuth{SetAuth: &jobpb.SetAuth{Settings: settings, IfRevision: revision}}})
	return wire.AuthPut{Mode: q.Mode.V, Revision: done.GetDetails().GetAuthRevision()}, err
}
