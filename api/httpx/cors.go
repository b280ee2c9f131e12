package httpx

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

func (o Origins) None() bool { return !o.any && o.exact == nil }

// Allow returns the value of Access-Control-Allow-Origin for a page; empty: it may not call.
func (o Origins) Allow(origin string) string {
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

// OfOtherPage reports whether a browser sent a request for a page of another origin, which may
// be an allowed one.
func OfOtherPage(r *http.Request) bool {
	asWrite := r.WithContext(r.Context())
	asWrite.Method = http.MethodPost
	return SameOrigin.Check(asWrite) != nil
}

// SameOrigin allows no other origins.
var SameOrigin = http.NewCrossOriginProtection()

// NewCrossOrigins returns what also allows the requests of the origins.
func NewCrossOrigins(o Origins) *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	for _, origin := range o.exact {
		if err := p.AddTrustedOrigin(origin); err != nil {
			panic(err) // ParseOrigins has checked it
		}
	}
	return p
}
