package main

// flagReason is what docs/configuration.md says of a flag of tarry server beside its help.
type flagReason struct {
	flag   string
	values string // the range or form of its values
	why    string // the reason for the default
}

// flagGroup is a section of docs/configuration.md.
type flagGroup struct {
	title string
	flags []flagReason
}

// flagGroups has each flag of tarry server once, in the order of docs/configuration.md. A
// test fails when a flag is missing.
var flagGroups = []flagGroup{
	{"The node and its data", []flagReason{
		{"node-id", "1 to 64 bytes, without control characters", "A single node needs no other name. Each node of a cluster needs its own."},
		{"data-dir", "a path", "It is relative to the working directory, so a first try needs no root and leaves nothing elsewhere. A service should name an absolute path."},
		{"config", "the path of a YAML file", "Most nodes need few settings, which fit in a command line or the environment."},
		{"log-store", "`raft-wal` or `raft-boltdb`", "`raft-wal` syncs once per append, `raft-boltdb` twice. The flag has no default of its own, so that a restart without it keeps the choice recorded in the data directory."},
	}},
	{"Addresses", []flagReason{
		{"http-addr", "`host:port`", "Only loopback, because a new cluster needs no tokens."},
		{"beanstalk-addr", "`host:port`, `unix:/path`, `off`", "beanstalkd's own port, so its clients work unchanged; only loopback, as above."},
		{"beanstalk-listen", "`addr=host:port,token-file=FILE`, or `addr=unix:/path,token-file=FILE`; a list of these", "Only who needs clients that cannot send `auth` needs it. Whoever reaches the address has the token's rights, so prefer a socket file, or loopback."},
		{"cluster-addr", "`host:port`", "The port after the HTTP port; only loopback."},
		{"gossip-addr", "`host:port`, both TCP and UDP", "The port after that; only loopback."},
		{"advertise-host", "a host name or IP address", "The address that a node listens on is usually the one that others use. Where it is 0.0.0.0, the machine's name is the best guess. A name rather than an IP address lets the node return with another address."},
		{"http-hosts", "a list of names without ports, such as `queue.example,*.svc.cluster.local`", "A node replies only to names that are its own. Otherwise a web page could reach it through a name that its owner points at the node (DNS rebinding)."},
		{"cors-origins", "a list of origins, or `*`", "No web page of another origin should be able to read or change jobs unless somebody has decided so."},
		{"insecure", "`true` or `false`", "Whoever reaches a port can do everything. So listening on other addresses than loopback must be a decision."},
	}},
	{"The cluster", []flagReason{
		{"join", "a list of up to 64 `host:port`", "Without it the node is a cluster of its own."},
		{"join-invitation-file", "the path of a file with mode 0600", "A cluster takes in any node that finds it, until `tarry cluster admission invited`. Then a node without a certificate needs an invitation. It may be deleted once the node is a member."},
		{"follow", "a list of URLs or `host:port`", "Most clusters are nobody's standby."},
		{"follow-token-file", "the path of a file with a token", "A primary without tokens needs none."},
		{"follow-token-over-http", "`true` or `false`", "The token lets its holder read everything."},
		{"follow-tls-ca", "the path of a PEM file", "Certificates of public authorities need none."},
		{"follow-tls-cert", "the path of a PEM file", "Few nodes ask their clients for a certificate."},
		{"follow-tls-key", "the path of a PEM file", "As above."},
		{"bootstrap-expect", "0 to 9", "With `--join` the safe default is 0: a node that finds nobody waits. If it formed a cluster of its own, two clusters could accept jobs side by side."},
		{"non-voter", "`true` or `false`; `true` only with `--join`", "Each voter makes the cluster able to survive more; a node that is to spare them reads, or to stand by, is the exception."},
		{"hold-version", "`true` or `false`", "After an upgrade the new features should become usable without another step. Set it while you may want to go back."},
		{"max-clock-offset", "100 ms to 1 h, such as `5s`", "Far above the offset of clocks with NTP plus the error of a measurement over a network, so no healthy node loses the lead; a clock without NTP drifts as much in about a day. Lower bound: the error of a measurement. Upper bound: more would guard nothing."},
	}},
	{"TLS between nodes", []flagReason{
		{"cluster-tls-mode", "`off`, `accept`, `prefer` or `require`", "Certificates must be made first. Nodes one step apart can talk to each other, so a cluster moves in three rolling restarts without a pause. Only `require` keeps strangers out."},
		{"cluster-tls-cert", "the path of a PEM file", "The certificate must name this node's id. A node reads the three files again when they change."},
		{"cluster-tls-key", "the path of a PEM file", "Only the user of the node should be able to read it."},
		{"cluster-tls-ca", "the path of a PEM file", "The system's authorities are never trusted: any of them could make a certificate for a node."},
	}},
	{"Encrypted gossip", []flagReason{
		{"gossip-keys-file", "the path of a file with 1 to 8 keys", "Keys must be made first, and be the same on all nodes. Others than the node's user must not be able to read it; the node writes it anew when `tarry keyring` changes the keys."},
		{"gossip-verify", "`off`, `outgoing` or `full`", "With keys the safe step is the default; the other two are for moving a cluster that runs, in three rolling restarts without a pause. Only `full` keeps strangers out."},
	}},
	{"Secrets", []flagReason{
		{"secrets-key-file", "the path of a file with 1 to 8 keys", "Keys must be made first, be on all nodes, and be kept apart from backups, which are of no use without them. Others than the node's user must not be able to read the file. A changed file is read again."},
	}},
	{"TLS with clients", []flagReason{
		{"http-tls-mode", "`off`, `optional` or `require`", "Certificates must be made first. `optional` serves both kinds of clients while they move."},
		{"http-tls-cert", "the path of a PEM file", "It may have intermediate certificates, and may come from any authority that clients trust. A changed file is read again."},
		{"http-tls-key", "the path of a PEM file", "Only the user of the node should be able to read it."},
		{"http-client-ca", "the path of a PEM file", "Without it a client need not show a certificate."},
		{"beanstalk-tls-mode", "`off`, `optional` or `require`", "Few clients of beanstalkd speak TLS; others need a proxy beside them."},
		{"beanstalk-tls-cert", "the path of a PEM file", "It may be the same as for HTTP."},
		{"beanstalk-tls-key", "the path of a PEM file", "It may be the same as for HTTP."},
		{"beanstalk-client-ca", "the path of a PEM file", "Without it a client need not show a certificate."},
	}},
	{"Limits and memory", []flagReason{
		{"max-body-bytes", "1 to 4,194,304 (4 MiB)", "A queue carries references to large things rather than the things. Above 4 MiB one entry of the Raft log would delay heartbeats."},
		{"beanstalk-max-job-size", "1 to 1,048,576 (1 MiB)", "beanstalkd's own default: a client sees `JOB_TOO_BIG` for the same jobs as before."},
		{"max-connections", "1 or more", "With a limit of 65,536 open files it leaves enough for the stores and the other nodes. A lower limit on open files lowers it at the start."},
		{"cache-bytes", "1,048,576 (1 MiB) or more", "Jobs that come and go within minutes are read from the memtables (up to 128 MiB beside this cache), so it serves older jobs only. With it a node with ten million delayed jobs takes [about 400 MiB](benchmarks.md#figures). Raise it if reads of old jobs are slow and memory is free."},
		{"metrics-topics", "0 to 10,000", "A topic takes 22 series on the leader, so 100 topics take 2,200. A producer that makes up topic names cannot fill Prometheus."},
		{"disk-low-water", "bytes, a share such as `5%`, `0` for never, or `auto`", "`auto` is 5% of the disk, at least 512 MiB and at most 2 GiB. The lower bound is what a node writes before it frees anything (two log segments, four memtables, a compaction); the upper bound wastes no large disk. With `0` there is no file `ballast` either, so a node whose disk is full starts only when you have freed space elsewhere on it."},
	}},
	{"Scheduled backups", []flagReason{
		{"backup-schedule", "a cron expression of 5 or 6 fields, a name such as `@daily`, or `@every` with a duration in whole seconds", "A directory for backups must be chosen first."},
		{"backup-zone", "the name of an IANA time zone, such as `Europe/Berlin`", "All nodes have UTC, and no hour of it occurs twice."},
		{"backup-dir", "a path outside of the data directory, or `s3://BUCKET/PREFIX`", "Only the operator knows a disk that does not fail together with the node's."},
		{"backup-keep", "1 to 10,000", "A week of daily backups."},
		{"backup-full-every", "1 to 100", "Each file can be restored on its own. A chain is as good as its oldest file."},
		{"backup-rate", "65,536 to 1,099,511,627,776, or 0 for no limit", "The leader serves clients meanwhile: a tenth of what a usual SSD writes, and 100 GB within the hour."},
		{"s3-endpoint", "`https://HOST` or `http://HOST`, with a port if needed", "The store that the names of this protocol are from; every other one has its own address."},
		{"s3-region", "the name of a region of the store", "Most stores say it."},
		{"s3-credentials-file", "a file with mode 0600", "The variables and files that other programs for such stores use, too."},
		{"s3-ca", "a PEM file", "Stores outside of one's own network have certificates that the system trusts."},
	}},
	{"Push and dashboard", []flagReason{
		{"push-allow", "a list of names, `*.names`, addresses, blocks of addresses, each with or without `:port`", "A push target makes a node call an address that a client chose. With none allowed nobody can use a node to reach services behind your firewall."},
		{"ui", "`on`, `readonly` or `off`", "It shows a new user what happens, and can do nothing that the API on the same port cannot."},
	}},
	{"Traces, logs and debugging", []flagReason{
		{"otlp-endpoint", "a URL with `http` or `https`, without a user and a query", "Most installations have no collector. Without one nothing of it runs, and an add costs what it cost before."},
		{"trace-sample", "0 to 1", "Whoever turns traces on wants to see them. Lower it where adds are many: a recorded add costs the node's processor about 20 µs more."},
		{"log-level", "`debug`, `info`, `warn` or `error`", "`info` has one line for each change of leader, member and setting, and none per job."},
		{"log-format", "`text` or `json`", "People read the first log. Use `json` where a program reads it."},
		{"audit-log", "the path of a file", "Whoever does not use tokens has nobody to record. A file of its own can be kept for longer than the log, and by somebody else."},
		{"pprof-addr", "`host:port`", "Profiles show what is in the memory of the process."},
	}},
}
