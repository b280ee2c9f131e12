package client

// The calls that are not about jobs, by what they are about. A value of these types is small, and
// as usable by many goroutines as the Client is.
type (
	// Topics are the calls on topics and their settings, and on many jobs of a topic.
	Topics struct{ client *Client }
	// Schedules are the calls on recurring jobs.
	Schedules struct{ client *Client }
	// Cluster are an operator's calls on the cluster.
	Cluster struct{ client *Client }
	// Node are the calls on one node: the client should have the address of only that node.
	Node struct{ client *Client }
	// Keys are the calls on the keys of gossip, and of the secrets of push targets.
	Keys struct{ client *Client }
	// Backups are the calls that make and use copies of a cluster.
	Backups struct{ client *Client }
	// Tokens are the calls on tokens, and on whether they are needed.
	Tokens struct{ client *Client }
	// Namespaces are the calls on namespaces.
	Namespaces struct{ client *Client }
)

// Topics returns the calls on topics.
func (c *Client) Topics() Topics { return Topics{c} }

// Schedules returns the calls on schedules.
func (c *Client) Schedules() Schedules { return Schedules{c} }

// Cluster returns the calls on the cluster.
func (c *Client) Cluster() Cluster { return Cluster{c} }

// Node returns the calls on one node.
func (c *Client) Node() Node { return Node{c} }

// Keys returns the calls on keys.
func (c *Client) Keys() Keys { return Keys{c} }

// Backups returns the calls on backups.
func (c *Client) Backups() Backups { return Backups{c} }

// Tokens returns the calls on tokens.
func (c *Client) Tokens() Tokens { return Tokens{c} }

// Namespaces returns the calls on namespaces.
func (c *Client) Namespaces() Namespaces { return Namespaces{c} }
