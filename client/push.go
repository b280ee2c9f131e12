package client

// Push is an HTTP target to which the jobs of a topic are posted.
type Push struct {
	// URL is up to 2000 bytes, with http or https. The server returns *** for each value in
	// its query, and Topics.ChangeSettings accepts that form too.
	// May be empty only with JobURLs: then each job needs one.
	URL string `json:"url,omitzero"`
	// Secret signs the posts, 16 to 256 bytes. The server never returns it. If it is empty
	// and URL is on the same server, Topics.ChangeSettings keeps the present secret, unless JobURLs
	// is new.
	Secret      string   `json:"secret,omitzero"`
	Timeout     Duration `json:"timeout,omitzero"`     // of a post, 100 ms to 5 min; 0 means 10 s
	Concurrency uint32   `json:"concurrency,omitzero"` // concurrent posts, 1 to 100; 0 means 10
	// JobURLs permits jobs a URL of their own (NewJob.PushURL).
	JobURLs bool `json:"job_urls,omitzero"`
	// HasSecret is set by the server if there is a secret. Calls do not send it.
	HasSecret bool `json:"has_secret,omitzero"`
}
