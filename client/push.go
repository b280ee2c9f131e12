package client

// Push is an HTTP target that is posted each job of a topic.
type Push struct {
	// URL is up to 2000 bytes, with http or https. Read from the server it has ***
	// for each value of its query; ChangeSettings takes it so, too.
	URL string `json:"url"`
	// Secret signs the posts, 16 to 256 bytes. It is never shown: read from the
	// server it is empty. ChangeSettings keeps the one that is there when it is
	// empty and URL leads to the same server.
	Secret      string   `json:"secret,omitzero"`
	Timeout     Duration `json:"timeout,omitzero"`     // until the answer, 100 ms to 5 min; 0 means 10 s
	Concurrency uint32   `json:"concurrency,omitzero"` // posts at once, 1 to 100; 0 means 10
}
