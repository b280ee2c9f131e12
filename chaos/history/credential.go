package history

import "math"

// Tokens of clients, each text of which is a Credential: a Grant makes it, and a Revoke ends
// it, by a deletion or by a rotation without an overlap.

// validity is when a credential was certainly good, and from when on it certainly was not.
type validity struct {
	granted   int64 // the end of the call that made it
	ending    int64 // the begin of the first call that may have ended it; MaxInt64: none
	revoked   int64 // the end of the call that certainly ended it; MaxInt64: none
	revokedOn string
}

// unauthorized is the Code of a call with a token that is not good.
const unauthorized = "unauthorized"

// checkCredentials: after an acknowledged revocation no node does anything for whoever has the
// token, and before it none refuses it for being unknown.
func checkCredentials(ops []Op, r *Report) {
	known := map[string]*validity{}
	for i := range ops {
		switch op := &ops[i]; {
		case op.Kind == Grant && op.Outcome == OK:
			known[op.Credential] = &validity{granted: op.Complete, ending: math.MaxInt64, revoked: math.MaxInt64}
		}
	}
	for i := range ops {
		op := &ops[i]
		v := known[op.Credential]
		if op.Kind != Revoke || v == nil || !op.maybe() {
			continue
		}
		v.ending = min(v.ending, op.Invoke)
		if op.Outcome == OK && op.Complete < v.revoked {
			v.revoked, v.revokedOn = op.Complete, op.Node
		}
	}
	for i := range ops {
		op := &ops[i]
		v := known[op.Credential]
		if v == nil || op.Kind == Grant || op.Kind == Revoke {
			continue
		}
		switch {
		case op.Outcome == OK && op.Invoke > v.revoked:
			r.Violate("access", op.ID, "%s did a call with the token %s %v after %s had acknowledged its revocation", op.Node, op.Credential, micros(op.Invoke-v.revoked), v.revokedOn)
		case op.Code == unauthorized && op.Invoke > v.granted && op.Complete < v.ending:
			r.Violate("access", op.ID, "%s did not know the token %s %v after it was made", op.Node, op.Credential, micros(op.Invoke-v.granted))
		}
	}
}
