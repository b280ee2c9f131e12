package api

import (
	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// whoami handles GET /v1/whoami: it shows a caller what it may do.
func (s *server) whoami(x *call) error {
	state := s.Access.State()
	w := &x.json
	w.success()
	w.text("mode", wire.ModeNames[state.Mode()])
	if t := state.Token(x.who.Principal.TokenID()); t != nil {
		w.text("id", t.Id)
		w.textUnlessEmpty("description", t.Description)
		w.rules("rules", t.Rules)
		w.textUnlessEmpty("id_prefix", t.IdPrefix)
		w.tokenLimits(t.Limits)
		w.timestamp("expires_at", t.ExpiresMs)
	} else {
		w.rules("rules", state.Settings.Anonymous)
	}
	w.endObject()
	return nil
}

// getAuth handles GET /v1/auth.
func (s *server) getAuth(x *call) error {
	info, err := s.readAuth(x)
	if err != nil {
		return err
	}
	w := &x.json
	w.success()
	w.text("mode", wire.ModeNames[info.GetSettings().GetMode()])
	w.rules("anonymous", info.GetSettings().GetAnonymous())
	w.number("revision", info.GetSettings().GetRevision())
	w.number("tokens", uint64(info.GetTokens()))
	w.boolean("bootstrapped", info.GetBootstrapped())
	w.endObject()
	return nil
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
func (s *server) putAuth(x *call) error {
	var q wire.AuthRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	revision, err := x.queryRevision()
	if err != nil {
		return err
	}
	if !q.Mode.Set {
		return job.Invalid("mode", "is missing; it takes off, report or enforce")
	}
	mode, err := wire.WordOf("mode", q.Mode, wire.ModeNames)
	if err != nil {
		return err
	}
	settings := &jobpb.AuthSettings{Mode: jobpb.AuthMode(mode)}
	if settings.Anonymous, err = wire.RulesOf("anonymous", q.Anonymous.V); err != nil {
		return err
	}
	if err := job.CheckAuthSettings(settings); err != nil {
		return err
	}
	op := &jobpb.Op{Kind: &jobpb.Op_SetAuth{SetAuth: &jobpb.SetAuth{Settings: settings, IfRevision: revision}}}
	return s.apply(x, op, func(r *jobpb.Result) {
		x.json.boolean("success", true)
		x.json.text("mode", q.Mode.V)
		x.json.number("revision", r.GetDetails().GetAuthRevision())
	})
}
