package api

import (
	"net/http"
	"net/url"
	"strings"

	"tarry/job"
)

// Origins are the origins whose pages may call a node from a browser: read what it returns
// and change what programs can change. The zero value is none: then no reply lets a page
// read it, and guard rejects what would change something.
type Origins struct {
	any   bool
	exact []string
}

// ParseOrigins reads origins, such as https://app.example, separated by commas; * is any.
// Empty text is none.
func ParseOrigins(text string) (o Origins, err error) {
	for origin := range strings.SplitSeq(text, ",") {
		switch origin = strings.ToLower(strings.TrimSpace(origin)); origin {
		case "":
		case "*":
			o.any = true
		case "null":
			return Origins{}, job.Errorf(job.CodeInvalid, "null is the origin of every local file and sandboxed page; it is allowed only by *")
		default:
			if err := checkOrigin(origin); err != nil {
				return Origins{}, err
			}
			o.exact = append(o.exact, origin)
		}
	}
	if o.any && o.exact != nil {
		return Origins{}, job.Errorf(job.CodeInvalid, "* is any origin; list either it or the origins")
	}
	return o, nil
}

// checkOrigin rejects what no browser sends as an origin, and so would never match.
func checkOrigin(origin string) error {
	u, err := url.Parse(origin)
	switch {
	case err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host || strings.Contains(u.Host, "*"):
		return job.Errorf(job.CodeInvalid, "%.100q is not an origin; it takes scheme://name or scheme://name:port, without a path or wildcard, such as https://app.example", origin)
	case u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443":
		return job.Errorf(job.CodeInvalid, "%.100q has the port that browsers leave out; leave it out, too", origin)
	}
	for _, c := range []byte(u.Host) {
		if c > 0x7f {
			return job.Errorf(job.CodeInvalid, "%.100q is not in ASCII, as browsers send it: xn--...", origin)
		}
	}
	return nil
}

// Any reports whether pages of all origins are allowed.
func (o Origins) Any() bool { return o.any }

func (o Origins) none() bool { return !o.any && o.exact == nil }

// allow returns the value of Access-Control-Allow-Origin for a page; empty: it may not call.
func (o Origins) allow(origin string) string {
	if origin == "" {
		return ""
	}
	if o.any {
		return "*"
	}
	for _, allowed := range o.exact {
		if allowed == origin {
			return origin
		}
	}
	return ""
}

// What pages may send and read besides what browsers always allow. Credentials are not
// allowed: a page sends its own token, if any.
const (
	corsRequestHeaders  = "Authorization, Content-Type, " + keyHeader + ", " + job.HeaderTraceParent + ", " + job.HeaderTraceState
	corsResponseHeaders = "Allow, Retry-After, " + headerLeader
	corsMaxAge          = "600" // seconds for which a browser need not ask again
)

// allowOrigins lets the pages of allowed origins read the replies. The dashboard is for its
// own pages alone.
func (s *server) allowOrigins(h http.Handler) http.Handler {
	if s.Origins.none() {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ofUI(r) {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Add("Vary", "Origin")
		if allowed := s.Origins.allow(r.Header.Get("Origin")); allowed != "" {
			w.Header().Set("Access-Control-Allow-Origin", allowed)
			w.Header().Set("Access-Control-Expose-Headers", corsResponseHeaders)
		}
		h.ServeHTTP(w, r)
	})
}

// guard rejects requests that change something and that a browser sent for a page of an
// origin that is neither the node's own nor allowed.
func (s *server) guard(h http.Handler) http.Handler {
	denied := s.refusing(s.crossOrigin)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.foreign(r) {
			denied.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// foreign reports whether a request that is no read is one of a page that may not send it.
func (s *server) foreign(r *http.Request) bool {
	if ofUI(r) {
		return sameOrigin.Check(r) != nil
	}
	return !s.Origins.any && s.crossOrigins.Check(r) != nil
}

// foreignGet is foreign for a GET that does more than to read. Browsers send the origin of a
// GET only to this machine and over TLS, and an image needs none. So a GET of a browser without
// an origin is foreign.
func (x *call) foreignGet() bool {
	asWrite := x.r.WithContext(x.r.Context())
	asWrite.Method = http.MethodPost
	from := x.r.Header
	silent := from.Get("Sec-Fetch-Site") == "" && from.Get("Origin") == "" && strings.HasPrefix(from.Get("User-Agent"), "Mozilla/")
	return silent && !x.s.Origins.any || x.s.foreign(asWrite)
}

// ofOtherPage reports whether a browser sent a request for a page of another origin, which may
// be an allowed one.
func ofOtherPage(r *http.Request) bool {
	asWrite := r.WithContext(r.Context())
	asWrite.Method = http.MethodPost
	return sameOrigin.Check(asWrite) != nil
}

// sameOrigin allows no other origins.
var sameOrigin = http.NewCrossOriginProtection()

// newCrossOrigins returns what also allows the requests of the origins.
func newCrossOrigins(o Origins) *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	for _, origin := range o.exact {
		if err := p.AddTrustedOrigin(origin); err != nil {
			panic(err) // ParseOrigins has checked it
		}
	}
	return p
}

// isPreflight reports whether a browser asks whether a page of an allowed origin may make a
// call.
func (x *call) isPreflight() bool {
	return x.r.Method == http.MethodOptions && x.r.Header.Get("Access-Control-Request-Method") != "" &&
		x.s.Origins.allow(x.r.Header.Get("Origin")) != ""
}

// preflight responds with what a page may send to a path. A browser then rejects any other
// method by itself.
func (x *call) preflight(rt route) {
	h := x.w.Header()
	h.Set("Access-Control-Allow-Methods", rt.allow())
	h.Set("Access-Control-Allow-Headers", corsRequestHeaders)
	h.Set("Access-Control-Max-Age", corsMaxAge)
	h.Del("Access-Control-Expose-Headers")
	x.nameLeader()
	x.status, x.sent = http.StatusNoContent, true
	x.w.WriteHeader(x.status)
}

func (s *server) crossOrigin(*call) error {
	return job.Errorf(codeCrossOrigin, "a browser sent this from a page of another origin, or does not say from where; such requests may neither change anything nor make a backup, unless --cors-origins lists the origin")
}
