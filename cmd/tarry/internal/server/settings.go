package server

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"tarry/api/beanstalk"
	"tarry/api/httpx"
	"tarry/cluster"
	"tarry/cluster/clockguard"
	"tarry/cluster/diskspace"
	"tarry/cluster/logstore"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/nodetls"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
	"tarry/push"
)

// SettingGroups has each flag of tarry server once, in the order of docs/configuration.md. What it says of
// values is of those that c has now.
func (c *Config) SettingGroups() []settingGroup {
	return []settingGroup{
		{"The node and its data", c.dataSettings()},
		{"Addresses", c.addressSettings()},
		{"The cluster", slices.Concat(c.joinSettings(), c.Follow.settings(), c.votingSettings())},
		{"TLS between nodes", c.clusterTLSSettings()},
		{"Encrypted gossip", c.gossipSettings()},
		{"Secrets", c.secretSettings()},
		{"TLS with clients", c.clientTLSSettings()},
		{"Limits and memory", c.limitSettings()},
		{"Scheduled backups", slices.Concat(c.Backups.settings(), s3Settings(&c.Backups.S3))},
		{"Push and dashboard", c.clientSettings()},
		{"Traces, logs and debugging", c.logSettings()},
	}
}

func (c *Config) dataSettings() []Setting {
	return []Setting{
		{Name: "node-id", To: &c.NodeID, def: "n1", shown: true, check: func(flag string) error { return CheckNodeID(flag, c.NodeID) },
			help:   "`name` of this node, unique in its cluster; kept for the life of its data",
			Values: "1 to 64 bytes, without control characters",
			Why:    "A single node needs no other name. Each node of a cluster needs its own."},
		{Name: "data-dir", To: &c.DataDir, def: "tarry-data", shown: true, Values: "a path",
			help: "`directory` for this node's data; created if it does not exist",
			Why:  "It is relative to the working directory, so a first try needs no root and leaves nothing elsewhere. A service should name an absolute path."},
		{Name: "config", To: &c.ConfigFile, shown: true, Values: "the path of a YAML file",
			help: "YAML `file` with any of these settings",
			Why:  "Most nodes need few settings, which fit in a command line or the environment."},
		{Name: "log-store", To: func(text string) error { return c.LogStore.UnmarshalText([]byte(text)) }, shown: true, show: string(c.LogStore),
			help:      fmt.Sprintf("`library` that keeps the Raft log: %s, which is faster, or %s, one file that its tools can read; chosen when the data directory is made and kept with it; default: %s for a new directory (docs/operations.md)", logstore.RaftWAL, logstore.RaftBoltDB, logstore.DefaultKind),
			Words:     cli.Choices["log-store"],
			ByDefault: "`raft-wal` for a new data directory",
			Why:       "`raft-wal` syncs once per append, `raft-boltdb` twice. The flag has no default of its own, so that a restart without it keeps the choice recorded in the data directory."},
	}
}

func (c *Config) addressSettings() []Setting {
	return []Setting{
		{Name: "http-addr", To: &c.HTTPAddr, def: "127.0.0.1:7300", shown: true, Listens: []string{c.HTTPAddr}, closed: c.HTTPTLS.closed(),
			help:   "`host:port` for clients over HTTP",
			Values: "`host:port`",
			Why:    "Only loopback, because a new cluster needs no tokens."},
		{Name: "beanstalk-addr", To: &c.BeanstalkAddr, def: "127.0.0.1:11300", shown: true, Listens: at(c.beanstalkAddr()), closed: c.BeanstalkTLS.closed(),
			help:   "`host:port`, or unix: and a path, for beanstalkd clients; off or empty: do not serve them",
			Values: "`host:port`, `unix:/path`, `off`",
			Why:    "beanstalkd's own port, so its clients work unchanged; only loopback, as above."},
		{Name: "beanstalk-listen", To: &c.BeanstalkListen, def: boundListeners(nil), shown: true, Listens: c.BeanstalkListen.addresses(), closed: c.BeanstalkTLS.closed(),
			help:   "one more `address` for beanstalkd clients, whose clients have the token of a file without sending one: addr=host:port,token-file=FILE, or addr=unix:/path; it may be given several times (docs/beanstalkd.md)",
			Values: "`addr=host:port,token-file=FILE`, or `addr=unix:/path,token-file=FILE`; a list of these",
			Why:    "Only who needs clients that cannot send `auth` needs it. Whoever reaches the address has the token's rights, so prefer a socket file, or loopback."},
		{Name: "cluster-addr", To: &c.ClusterAddr, def: "127.0.0.1:7301", shown: true, Listens: []string{c.ClusterAddr}, closed: c.ClusterTLSMode == nodetls.Require,
			help:   "`host:port` for other nodes (TCP)",
			Values: "`host:port`",
			Why:    "The port after the HTTP port; only loopback."},
		{Name: "gossip-addr", To: &c.GossipAddr, def: "127.0.0.1:7302", shown: true, Listens: []string{c.GossipAddr}, closed: c.GossipKeysFile != "" && c.GossipVerify == gossip.VerifyFull,
			help:   "`host:port` for finding other nodes (TCP and UDP)",
			Values: "`host:port`, both TCP and UDP",
			Why:    "The port after that; only loopback."},
		{Name: "advertise-host", To: &c.AdvertiseHost, shown: true, Values: "a host name or IP address",
			help:      "`name` by which other nodes and clients reach this one; default: the host of --cluster-addr, or the machine's name if that is 0.0.0.0",
			ByDefault: "the host of `--cluster-addr`, or the machine's name if that is 0.0.0.0",
			Why:       "The address that a node listens on is usually the one that others use. Where it is 0.0.0.0, the machine's name is the best guess. A name rather than an IP address lets the node return with another address."},
		{Name: "http-hosts", To: &c.HTTPHosts, shown: true, check: c.checkHosts,
			help:   "other `names` by which clients call this node over HTTP, such as a load balancer's, in a list; *.name is any below it, * any at all. IP addresses, localhost and --advertise-host need not be listed",
			Values: "a list of names without ports, such as `queue.example,*.svc.cluster.local`",
			Why:    "A node replies only to names that are its own. Otherwise a web page could reach it through a name that its owner points at the node (DNS rebinding)."},
		{Name: "cors-origins", To: parsed(&c.CORSOrigins, httpx.ParseOrigins), Values: "a list of origins, or `*`",
			help: "origins whose web pages may call this node from a browser, a `list` such as https://app.example,http://localhost:5173; * is any page; default: none (docs/operations.md)",
			Why:  "No web page of another origin should be able to read or change jobs unless somebody has decided so."},
		{Name: "insecure", To: &c.Insecure, shown: true,
			help: "listen on other addresses than loopback: whoever can reach them can do everything, unless tokens are enforced (docs/tokens.md)",
			Why:  "Whoever reaches a port can do everything. So listening on other addresses than loopback must be a decision."},
	}
}

func (c *Config) joinSettings() []Setting {
	return []Setting{
		{Name: "join", To: &c.Join, shown: true, Values: "a list of up to 64 `host:port`",
			help: "gossip addresses of the cluster's nodes, `host:port,...`; this node's own may be among them",
			Why:  "Without it the node is a cluster of its own."},
		{Name: "join-invitation-file", To: &c.JoinInvitationFile, Values: "the path of a file with mode 0600",
			check: refusedIf(c.JoinInvitationFile != "" && c.expect() > 0, "needs --join, without --bootstrap-expect: an invitation is to a cluster that exists"),
			help:  "`file` with the invitation of this node to the cluster, made by tarry cluster invite; only a node that is in no cluster yet reads it (docs/security.md)",
			Why:   "A cluster takes in any node that finds it, until `tarry cluster admission invited`. Then a node without a certificate needs an invitation. It may be deleted once the node is a member."},
	}
}

func (c *Config) votingSettings() []Setting {
	return []Setting{
		{Name: "bootstrap-expect", To: c.parseExpect, shown: true, show: strconv.Itoa(c.expect()), Values: "0 to 9",
			help:      "`number` of nodes that start a new cluster together; default: 1 without --join; 0 with --join, which means that the node only joins one",
			ByDefault: "1 without `--join`, 0 with it",
			Why:       "With `--join` the safe default is 0: a node that finds nobody waits. If it formed a cluster of its own, two clusters could accept jobs side by side."},
		{Name: "non-voter", To: &c.NonVoter, Values: "`true` or `false`; `true` only with `--join`",
			check: refusedIf(c.NonVoter && c.expect() > 0, "needs --join, without --bootstrap-expect: a new cluster begins with voters"),
			help:  "with --join: get everything and serve clients, but never vote, and so never lead (docs/operations.md)",
			Why:   "Each voter makes the cluster able to survive more; a node that is to spare them reads, or to stand by, is the exception."},
		{Name: "hold-version", To: &c.HoldVersion, shown: true,
			help: "keep the cluster version from being raised while this node is a member, so that all nodes can go back to the release before (docs/operations.md)",
			Why:  "After an upgrade the new features should become usable without another step. Set it while you may want to go back."},
		{Name: "max-clock-offset", To: &c.MaxClockOffset, def: clockguard.DefaultMaxOffset, shown: true, check: between(c.MaxClockOffset, minClockOffset, maxClockOffset),
			help:   fmt.Sprintf("a node whose clock is further off the majority's than this `duration` does not lead; %v to %v, the same on all nodes (docs/operations.md)", minClockOffset, maxClockOffset),
			Values: "100 ms to 1 h, such as `5s`",
			Why:    "Far above the offset of clocks with NTP plus the error of a measurement over a network, so no healthy node loses the lead; a clock without NTP drifts as much in about a day. Lower bound: the error of a measurement. Upper bound: more would guard nothing."},
	}
}

func (c *Config) clusterTLSSettings() []Setting {
	return []Setting{
		{Name: "cluster-tls-mode", To: &c.ClusterTLSMode, def: nodetls.Off, shown: true, Words: []string{"off", "accept", "prefer", "require"},
			check: refusedIf(c.ClusterTLSMode != nodetls.Off && (c.ClusterTLS.Cert == "" || c.ClusterTLS.Key == "" || c.ClusterTLS.CA == ""),
				"is %v; that needs --cluster-tls-cert, --cluster-tls-key and --cluster-tls-ca", c.ClusterTLSMode),
			help: "`step` of the move to TLS between nodes: off; accept: dial plain, accept both; prefer: dial TLS, then plain, accept both; require: TLS only (docs/tls.md)",
			Why:  "Certificates must be made first. Nodes one step apart can talk to each other, so a cluster moves in three rolling restarts without a pause. Only `require` keeps strangers out."},
		{Name: "cluster-tls-cert", To: &c.ClusterTLS.Cert, shown: true, Values: "the path of a PEM file",
			help: "`file` with the certificate of this node, made by tarry cert node",
			Why:  "The certificate must name this node's id. A node reads the three files again when they change."},
		{Name: "cluster-tls-key", To: &c.ClusterTLS.Key, shown: true, Values: "the path of a PEM file",
			help: "`file` with its key",
			Why:  "Only the user of the node should be able to read it."},
		{Name: "cluster-tls-ca", To: &c.ClusterTLS.CA, shown: true, Values: "the path of a PEM file",
			help: "`file` with the certificate of the cluster's authority, or of two while one replaces the other",
			Why:  "The system's authorities are never trusted: any of them could make a certificate for a node."},
	}
}

func (c *Config) gossipSettings() []Setting {
	return []Setting{
		{Name: "gossip-keys-file", To: &c.GossipKeysFile, Values: "the path of a file with 1 to 8 keys",
			help: "`file` with the keys that encrypt gossip, made by tarry keygen: one a line, the first encrypts. tarry keyring rewrites it; default: gossip is in plain text (docs/tls.md)",
			Why:  "Keys must be made first, and be the same on all nodes. Others than the node's user must not be able to read it; the node writes it anew when `tarry keyring` changes the keys."},
		{Name: "gossip-verify", To: &c.GossipVerify, def: gossip.VerifyFull, Words: []string{"off", "outgoing", "full"},
			check: refusedIf(c.GossipVerify != gossip.VerifyFull && c.GossipKeysFile == "", "is %v; that needs --gossip-keys-file", c.GossipVerify),
			help:  "`step` of the move to encrypted gossip: off: send plain, accept both; outgoing: send encrypted, accept both; full: encrypted only (docs/tls.md)",
			Why:   "With keys the safe step is the default; the other two are for moving a cluster that runs, in three rolling restarts without a pause. Only `full` keeps strangers out."},
	}
}

func (c *Config) secretSettings() []Setting {
	return []Setting{
		{Name: "secrets-key-file", To: &c.SecretsKeyFile, Values: "the path of a file with 1 to 8 keys",
			help: "`file` with the keys that seal the secrets of push targets, made by tarry secrets keygen: one a line, the first seals; default: they are stored in plain text (docs/push.md)",
			Why:  "Keys must be made first, be on all nodes, and be kept apart from backups, which are of no use without them. Others than the node's user must not be able to read the file. A changed file is read again."},
	}
}

func (c *Config) clientTLSSettings() []Setting {
	return append(c.HTTPTLS.settings("http", [4]string{
		"Certificates must be made first. `optional` serves both kinds of clients while they move.",
		"It may have intermediate certificates, and may come from any authority that clients trust. A changed file is read again.",
		"Only the user of the node should be able to read it.",
		"Without it a client need not show a certificate.",
	}), c.BeanstalkTLS.settings("beanstalk", [4]string{
		"Few clients of beanstalkd speak TLS; others need a proxy beside them.",
		"It may be the same as for HTTP.",
		"It may be the same as for HTTP.",
		"Without it a client need not show a certificate.",
	})...)
}

func (c *Config) limitSettings() []Setting {
	return []Setting{
		{Name: "max-body-bytes", To: &c.MaxBodyBytes, def: job.DefaultMaxBodyBytes, shown: true, check: between(c.MaxBodyBytes, 1, job.HardMaxBodyBytes),
			help:      fmt.Sprintf("largest job body in `bytes`, up to %d", job.HardMaxBodyBytes),
			Values:    "1 to 4,194,304 (4 MiB)",
			ByDefault: "`1048576` (1 MiB)",
			Why:       "A queue carries references to large things rather than the things. Above 4 MiB one entry of the Raft log would delay heartbeats."},
		{Name: "beanstalk-max-job-size", To: &c.BeanstalkMaxJob, def: beanstalk.DefaultMaxJobSize, shown: true, check: between(c.BeanstalkMaxJob, 1, beanstalk.HardMaxJobSize),
			help:   fmt.Sprintf("largest job body of a beanstalkd client in `bytes`, up to %d", beanstalk.HardMaxJobSize),
			Values: "1 to 1,048,576 (1 MiB)",
			Why:    "beanstalkd's own default: a client sees `JOB_TOO_BIG` for the same jobs as before."},
		{Name: "max-connections", To: &c.MaxConnections, def: 50_000, shown: true, check: refusedIf(c.MaxConnections < 1, "is %d; it must be 1 or more", c.MaxConnections),
			help:   "maximum `number` of client connections at a time on each of the two client ports; lowered at the start to what the limit on open files allows",
			Values: "1 or more",
			Why:    "With a limit of 65,536 open files it leaves enough for the stores and the other nodes. A lower limit on open files lowers it at the start."},
		{Name: "cache-bytes", To: &c.CacheBytes, def: int64(64 << 20), shown: true, check: refusedIf(c.CacheBytes < 1<<20, "is %d; it must be at least %d", c.CacheBytes, 1<<20),
			help:      "memory for caching the state on disk, in `bytes`",
			Values:    "1,048,576 (1 MiB) or more",
			ByDefault: "`67108864` (64 MiB)",
			Why:       "Jobs that come and go within minutes are read from the memtables (up to 128 MiB beside this cache), so it serves older jobs only. With it a node with ten million delayed jobs takes [about 400 MiB](benchmarks.md#figures). Raise it if reads of old jobs are slow and memory is free."},
		{Name: "metrics-topics", To: &c.MetricsTopics, def: 100, shown: true, check: between(c.MetricsTopics, 0, cluster.MaxMetricsTopics),
			help:   fmt.Sprintf("`number` of topics with metrics of their own, up to %d; all others are summed as topic=\"other\" (docs/monitoring.md)", cluster.MaxMetricsTopics),
			Values: "0 to 10,000",
			Why:    "A topic takes 22 series on the leader, so 100 topics take 2,200. A producer that makes up topic names cannot fill Prometheus."},
		{Name: "disk-low-water", To: &c.DiskLowWater, def: diskspace.Mark{}, shown: true, Values: "bytes, a share such as `5%`, `0` for never, or `auto`",
			help: "free `space` of the data directory's disk under which adds are refused: bytes, a share of the disk such as 5%, 0 for never, or auto: 5% but 512 MiB to 2 GiB",
			Why:  "`auto` is 5% of the disk, at least 512 MiB and at most 2 GiB. The lower bound is what a node writes before it frees anything (two log segments, four memtables, a compaction); the upper bound wastes no large disk. With `0` there is no file `ballast` either, so a node whose disk is full starts only when you have freed space elsewhere on it."},
	}
}

func (c *Config) clientSettings() []Setting {
	return []Setting{
		{Name: "push-allow", To: parsed(&c.PushAllow, push.ParseAllow),
			help:   "destinations that topics may push their jobs to, a `list` of names, *.names, addresses or blocks of addresses, each with or without :port; default: none (docs/push.md)",
			Values: "a list of names, `*.names`, addresses, blocks of addresses, each with or without `:port`",
			Why:    "A push target makes a node call an address that a client chose. With none allowed nobody can use a node to reach services behind your firewall."},
		{Name: "ui", To: &c.UI, def: UIOn, shown: true, Words: []string{UIOn, UIReadOnly, UIOff},
			help: "`mode` of the dashboard at /ui/ of --http-addr: on, readonly (it shows, and changes nothing) or off",
			Why:  "It shows a new user what happens, and can do nothing that the API on the same port cannot."},
	}
}

func (c *Config) logSettings() []Setting {
	return []Setting{
		{Name: "otlp-endpoint", To: parsed(&c.OTLPEndpoint, parseEndpoint), shown: true, show: withoutSecrets(c.OTLPEndpoint),
			help:      "`URL` of an OpenTelemetry collector that takes OTLP over HTTP, such as http://127.0.0.1:4318: the node sends it spans of adds, deliveries and the ends of jobs; default: that of OTEL_EXPORTER_OTLP_ENDPOINT, or none, and no spans (docs/tracing.md)",
			Values:    "a URL with `http` or `https`, without a user and a query",
			ByDefault: "that of `OTEL_EXPORTER_OTLP_ENDPOINT`, or none",
			Why:       "Most installations have no collector. Without one nothing of it runs, and an add costs what it cost before."},
		{Name: "trace-sample", To: parsed(&c.TraceSample, parseSample), shown: true, show: sampleText(c.TraceSample), Values: "0 to 1",
			help:      "`share` of the traces that begin here which are recorded, from 0 to 1; the caller decides of those that have begun before; default: as OTEL_TRACES_SAMPLER says, or all",
			ByDefault: "as `OTEL_TRACES_SAMPLER` says, or all",
			Why:       "Whoever turns traces on wants to see them. Lower it where adds are many: a recorded add costs the node's processor about 20 µs more."},
		{Name: "log-level", To: (*logLevel)(&c.LogLevel), def: logLevel(slog.LevelInfo), shown: true, live: true,
			help:      "lowest `level` to log: debug, info, warn or error",
			Words:     []string{"debug", "info", "warn", "error"},
			ByDefault: "`info`",
			Why:       "`info` has one line for each change of leader, member and setting, and none per job."},
		{Name: "log-format", To: &c.LogFormat, def: "text", shown: true, Words: []string{"text", "json"},
			help: "`format` of the log: text or json",
			Why:  "People read the first log. Use `json` where a program reads it."},
		{Name: "audit-log", To: &c.AuditLog, Values: "the path of a file",
			help: "`file` for who did what: denials, and all that manages, operates or administers, one JSON object a line; SIGHUP opens it again; default: none (docs/tokens.md)",
			Why:  "Whoever does not use tokens has nobody to record. A file of its own can be kept for longer than the log, and by somebody else."},
		{Name: "pprof-addr", To: &c.PprofAddr, shown: true, Listens: at(c.PprofAddr), Values: "`host:port`",
			help: "`host:port` to serve Go's profiles on, for debugging; off by default",
			Why:  "Profiles show what is in the memory of the process."},
	}
}
