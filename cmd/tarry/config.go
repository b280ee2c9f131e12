package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"tarry/api"
	"tarry/api/beanstalk"
	"tarry/cluster"
	"tarry/cluster/clockguard"
	"tarry/cluster/diskspace"
	"tarry/cluster/logstore"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/nodetls"
	"tarry/internal/certs"
	"tarry/internal/logtail"
	"tarry/internal/secretkeys"
	"tarry/job"
	"tarry/push"
)

// serverConfig has the settings of `tarry server`, by flag, environment variable or
// configuration file, in that order of precedence.
type serverConfig struct {
	NodeID             string
	DataDir            string
	HTTPAddr           string
	BeanstalkAddr      string
	BeanstalkMaxJob    int
	BeanstalkListen    boundListeners
	ClusterAddr        string
	GossipAddr         string
	HTTPTLS            portTLS
	BeanstalkTLS       portTLS
	ClusterTLS         certs.Files
	ClusterTLSMode     nodetls.Mode
	GossipKeysFile     string
	GossipVerify       gossip.Verify
	SecretsKeyFile     string
	secrets            *secretkeys.Ring // opened from that; nil: there are none
	recent             *logtail.Tail    // the last lines of this node's log; set by newLogger
	AdvertiseHost      string
	HTTPHosts          string
	CORSOrigins        api.Origins
	Insecure           bool
	Join               string
	JoinInvitationFile string
	Follow             followFlags
	BootstrapExpect    int
	MaxBodyBytes       int
	CacheBytes         int64
	MetricsTopics      int
	LogStore           logstore.Kind
	DiskLowWater       diskspace.Mark
	Backups            backupFlags
	MaxClockOffset     time.Duration
	NonVoter           bool
	HoldVersion        bool
	MaxConnections     int
	LogLevel           slog.Level
	LogFormat          string
	PprofAddr          string
	PushAllow          push.Allow
	UI                 string
	OTLPEndpoint       string
	AuditLog           string
	TraceSample        *float64 // nil: as the environment says
	ConfigFile         string

	settings []job.NodeSetting // what the node shows of them

	// For reading the file again: all settings as they were before that, with the names of those
	// that were given, and the texts of the file.
	beforeFile *serverConfig
	given      map[string]bool
	fromFile   map[string]string
	level      *slog.LevelVar // of the log; set by newLogger
}

const serverText = `Runs one node. With no flags: a single durable node on 127.0.0.1 that keeps its
data in ./tarry-data. Every flag can also be set by an environment variable
(--node-id is TARRY_NODE_ID) or by a key of the file named with --config
(node-id: n1). A flag wins over the environment, the environment over the file.`

const serverExample = `  # a new three-node cluster, the same command on each node but for its own name
  tarry server --node-id n1 --advertise-host n1 --bootstrap-expect 3 \
    --join n1:7302,n2:7302,n3:7302 --http-addr 0.0.0.0:7300 \
    --cluster-addr 0.0.0.0:7301 --gossip-addr 0.0.0.0:7302 --insecure`

func (c *serverConfig) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("tarry server", flag.ContinueOnError)
	fs.StringVar(&c.NodeID, "node-id", "n1", "`name` of this node, unique in its cluster; kept for the life of its data")
	fs.StringVar(&c.DataDir, "data-dir", "tarry-data", "`directory` for this node's data; created if it does not exist")
	fs.StringVar(&c.HTTPAddr, "http-addr", "127.0.0.1:7300", "`host:port` for clients over HTTP")
	fs.StringVar(&c.BeanstalkAddr, "beanstalk-addr", "127.0.0.1:11300", "`host:port`, or unix: and a path, for beanstalkd clients; off or empty: do not serve them")
	fs.TextVar(&c.BeanstalkListen, "beanstalk-listen", boundListeners(nil), "one more `address` for beanstalkd clients, whose clients have the token of a file without sending one: addr=host:port,token-file=FILE, or addr=unix:/path; it may be given several times (docs/beanstalkd.md)")
	fs.IntVar(&c.BeanstalkMaxJob, "beanstalk-max-job-size", beanstalk.DefaultMaxJobSize, fmt.Sprintf("largest job body of a beanstalkd client in `bytes`, up to %d", beanstalk.HardMaxJobSize))
	fs.StringVar(&c.ClusterAddr, "cluster-addr", "127.0.0.1:7301", "`host:port` for other nodes (TCP)")
	fs.StringVar(&c.GossipAddr, "gossip-addr", "127.0.0.1:7302", "`host:port` for finding other nodes (TCP and UDP)")
	fs.TextVar(&c.ClusterTLSMode, "cluster-tls-mode", nodetls.Off, "`step` of the move to TLS between nodes: off; accept: dial plain, accept both; prefer: dial TLS, then plain, accept both; require: TLS only (docs/tls.md)")
	fs.StringVar(&c.ClusterTLS.Cert, "cluster-tls-cert", "", "`file` with the certificate of this node, made by tarry cert node")
	fs.StringVar(&c.ClusterTLS.Key, "cluster-tls-key", "", "`file` with its key")
	fs.StringVar(&c.ClusterTLS.CA, "cluster-tls-ca", "", "`file` with the certificate of the cluster's authority, or of two while one replaces the other")
	fs.StringVar(&c.GossipKeysFile, "gossip-keys-file", "", "`file` with the keys that encrypt gossip, made by tarry keygen: one a line, the first encrypts. tarry keyring rewrites it; default: gossip is in plain text (docs/tls.md)")
	fs.TextVar(&c.GossipVerify, "gossip-verify", gossip.VerifyFull, "`step` of the move to encrypted gossip: off: send plain, accept both; outgoing: send encrypted, accept both; full: encrypted only (docs/tls.md)")
	fs.StringVar(&c.SecretsKeyFile, "secrets-key-file", "", "`file` with the keys that seal the secrets of push targets, made by tarry secrets keygen: one a line, the first seals; default: they are stored in plain text (docs/push.md)")
	c.HTTPTLS.flags(fs, "http", "--http-addr")
	c.BeanstalkTLS.flags(fs, "beanstalk", "--beanstalk-addr")
	fs.StringVar(&c.AdvertiseHost, "advertise-host", "", "`name` by which other nodes and clients reach this one; default: the host of --cluster-addr, or the machine's name if that is 0.0.0.0")
	fs.StringVar(&c.HTTPHosts, "http-hosts", "", "other `names` by which clients call this node over HTTP, such as a load balancer's, in a list; *.name is any below it, * any at all. IP addresses, localhost and --advertise-host need not be listed")
	fs.Func("cors-origins", "origins whose web pages may call this node from a browser, a `list` such as https://app.example,http://localhost:5173; * is any page; default: none (docs/operations.md)", func(text string) (err error) {
		c.CORSOrigins, err = api.ParseOrigins(text)
		return err
	})
	fs.BoolVar(&c.Insecure, "insecure", false, "listen on other addresses than loopback: whoever can reach them can do everything, unless tokens are enforced (docs/tokens.md)")
	fs.StringVar(&c.Join, "join", "", "gossip addresses of the cluster's nodes, `host:port,...`; this node's own may be among them")
	fs.StringVar(&c.JoinInvitationFile, "join-invitation-file", "", "`file` with the invitation of this node to the cluster, made by tarry cluster invite; only a node that is in no cluster yet reads it (docs/security.md)")
	c.BootstrapExpect = -1 // it depends
	fs.Func("bootstrap-expect", "`number` of nodes that start a new cluster together; default: 1 without --join; 0 with --join, which means that the node only joins one", func(text string) error {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n > cluster.MaxBootstrapExpect {
			return fmt.Errorf("it must be a whole number from 0 to %d", cluster.MaxBootstrapExpect)
		}
		c.BootstrapExpect = int(n)
		return nil
	})
	c.Follow.flags(fs)
	fs.IntVar(&c.MaxBodyBytes, "max-body-bytes", job.DefaultMaxBodyBytes, fmt.Sprintf("largest job body in `bytes`, up to %d", job.HardMaxBodyBytes))
	fs.Func("log-store", fmt.Sprintf("`library` that keeps the Raft log: %s, which is faster, or %s, one file that its tools can read; chosen when the data directory is made and kept with it; default: %s for a new directory (docs/operations.md)", logstore.RaftWAL, logstore.RaftBoltDB, logstore.DefaultKind), func(text string) error {
		return c.LogStore.UnmarshalText([]byte(text))
	})
	fs.Int64Var(&c.CacheBytes, "cache-bytes", 64<<20, "memory for caching the state on disk, in `bytes`")
	fs.IntVar(&c.MetricsTopics, "metrics-topics", 100, fmt.Sprintf("`number` of topics with metrics of their own, up to %d; all others are summed as topic=\"other\" (docs/monitoring.md)", cluster.MaxMetricsTopics))
	fs.Func("push-allow", "destinations that topics may push their jobs to, a `list` of names, *.names, addresses or blocks of addresses, each with or without :port; default: none (docs/push.md)", func(text string) (err error) {
		c.PushAllow, err = push.ParseAllow(text)
		return err
	})
	fs.IntVar(&c.MaxConnections, "max-connections", 50_000, "maximum `number` of client connections at a time on each of the two client ports; lowered at the start to what the limit on open files allows")
	fs.TextVar(&c.DiskLowWater, "disk-low-water", diskspace.Mark{}, "free `space` of the data directory's disk under which adds are refused: bytes, a share of the disk such as 5%, 0 for never, or auto: 5% but 512 MiB to 2 GiB")
	c.Backups.flags(fs)
	fs.DurationVar(&c.MaxClockOffset, "max-clock-offset", clockguard.DefaultMaxOffset, fmt.Sprintf("a node whose clock is further off the majority's than this `duration` does not lead; %v to %v, the same on all nodes (docs/operations.md)", minClockOffset, maxClockOffset))
	fs.BoolVar(&c.NonVoter, "non-voter", false, "with --join: get everything and serve clients, but never vote, and so never lead (docs/operations.md)")
	fs.BoolVar(&c.HoldVersion, "hold-version", false, "keep the cluster version from being raised while this node is a member, so that all nodes can go back to the release before (docs/operations.md)")
	fs.TextVar((*logLevel)(&c.LogLevel), "log-level", logLevel(slog.LevelInfo), "lowest `level` to log: debug, info, warn or error")
	fs.StringVar(&c.LogFormat, "log-format", "text", "`format` of the log: text or json")
	fs.StringVar(&c.UI, "ui", uiOn, "`mode` of the dashboard at /ui/ of --http-addr: on, readonly (it shows, and changes nothing) or off")
	fs.Func("otlp-endpoint", "`URL` of an OpenTelemetry collector that takes OTLP over HTTP, such as http://127.0.0.1:4318: the node sends it spans of adds, deliveries and the ends of jobs; default: that of OTEL_EXPORTER_OTLP_ENDPOINT, or none, and no spans (docs/tracing.md)", func(text string) (err error) {
		c.OTLPEndpoint, err = parseEndpoint(text)
		return err
	})
	fs.Func("trace-sample", "`share` of the traces that begin here which are recorded, from 0 to 1; the caller decides of those that have begun before; default: as OTEL_TRACES_SAMPLER says, or all", func(text string) (err error) {
		c.TraceSample, err = parseSample(text)
		return err
	})
	fs.StringVar(&c.AuditLog, "audit-log", "", "`file` for who did what: denials, and all that manages, operates or administers, one JSON object a line; SIGHUP opens it again; default: none (docs/tokens.md)")
	fs.StringVar(&c.PprofAddr, "pprof-addr", "", "`host:port` to serve Go's profiles on, for debugging; off by default")
	fs.StringVar(&c.ConfigFile, "config", "", "YAML `file` with any of these settings")
	return fs
}

// serverCommand is tarry server. Its flags are those of Go's package flag: then the
// environment and the file set them by the same names, and with the same messages.
func serverCommand(env func(string) (string, bool), start func(context.Context, *serverConfig, io.Writer) error) *cobra.Command {
	cfg := &serverConfig{}
	flags := cfg.flags()
	cmd := &cobra.Command{Use: "server", Short: "run a node until it is stopped", Long: serverText, Example: serverExample, Args: flagsOnly}
	cmd.Flags().AddGoFlagSet(flags)
	var mistakes []error // on the command line
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Value = collecting{f.Value, flags.Lookup(f.Name), &mistakes} })
	check := cmd.Flags().Bool(checkConfigFlag, false, "check all settings and the files that they name, list every mistake, and start nothing; exit code 2 if there is one")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := map[string]bool{}
		cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
		err := errors.Join(errors.Join(mistakes...), cfg.complete(flags, given, env))
		if *check {
			err = errors.Join(err, cfg.checkFiles())
		}
		if err != nil {
			return usageError{err}
		}
		if *check {
			return printer{cmd.OutOrStdout()}.line("no mistake was found in the settings")
		}
		return start(cmd.Context(), cfg, cmd.ErrOrStderr())
	}
	return cmd
}

// collecting is the value of a flag that keeps its errors, so that all mistakes on a command line are
// listed.
type collecting struct {
	pflag.Value
	of       *flag.Flag
	mistakes *[]error
}

// Set implements pflag.Value.
func (v collecting) Set(text string) error {
	if err := set(v.of, text); err != nil {
		*v.mistakes = append(*v.mistakes, fmt.Errorf("invalid value %q for flag --%s: %s", text, v.of.Name, invalidReason(err)))
	}
	return nil
}

// complete fills in what the command line left open from the environment and the
// configuration file. Its error joins all mistakes, each of one line.
func (c *serverConfig) complete(fs *flag.FlagSet, given map[string]bool, env func(string) (string, bool)) error {
	err := fromEnv(fs, given, env)
	before := *c
	c.beforeFile, c.given = &before, maps.Clone(given)
	if c.ConfigFile != "" {
		var failed error
		c.fromFile, failed = fromFile(fs, given, c.ConfigFile)
		err = errors.Join(err, failed)
	}
	if err = errors.Join(err, c.check()); err != nil {
		return err
	}
	if c.AdvertiseHost, err = c.advertiseHost(); err != nil {
		return err
	}
	c.settings = c.settingsOf(fs, given)
	return nil
}

// set sets a flag. If that fails it has its default, so that no other check complains of it.
func set(f *flag.Flag, text string) error {
	err := f.Value.Set(text)
	if err != nil && f.DefValue != "" {
		_ = f.Value.Set(f.DefValue)
	}
	return plainReason(pflag.PFlagFromGoFlag(f).Value.Type(), err)
}

func fromEnv(fs *flag.FlagSet, given map[string]bool, env func(string) (string, bool)) (err error) {
	fs.VisitAll(func(f *flag.Flag) {
		name := "TARRY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, found := env(name)
		if !found || given[f.Name] {
			return
		}
		given[f.Name] = true
		if failed := set(f, value); failed != nil {
			err = errors.Join(err, fmt.Errorf("environment variable %s=%q: %w", name, value, failed))
		}
	})
	return err
}

// fromFile sets what is not given yet from a file, and returns the texts of all its settings.
func fromFile(fs *flag.FlagSet, given map[string]bool, path string) (texts map[string]string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("configuration file %s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	texts = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(doc)) {
		f := fs.Lookup(key)
		if f == nil || key == "config" {
			err = errors.Join(err, fmt.Errorf("configuration file %s: there is no setting %q; the settings are the flags of tarry server, without the dashes", path, key))
			continue
		}
		text, failed := settingText(doc[key])
		texts[key] = text
		if failed == nil && !given[key] {
			failed = set(f, text)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("configuration file %s: %s: %.100q: %w", path, key, text, failed))
		}
	}
	return texts, err
}

// settingText gives a YAML value the form that a flag takes; a list becomes the
// comma-separated form.
func settingText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			s, ok := e.(string)
			if !ok {
				return "", errors.New("a list takes strings only")
			}
			parts[i] = s
		}
		return strings.Join(parts, ","), nil
	}
	return "", fmt.Errorf("takes a string, a number or a list of strings, not %T", v)
}

// Less than minClockOffset is within the error of measuring over a network; more than
// maxClockOffset guards nothing.
const (
	minClockOffset = 100 * time.Millisecond
	maxClockOffset = time.Hour
)

// check returns all mistakes.
func (c *serverConfig) check() error {
	var found []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			found = append(found, fmt.Errorf(format, args...))
		}
	}
	for _, a := range c.addresses() {
		found = append(found, c.checkAddress(a))
	}
	found = append(found, c.HTTPTLS.check("http"), c.BeanstalkTLS.check("beanstalk"))
	f := c.ClusterTLS
	refuse(c.ClusterTLSMode != nodetls.Off && (f.Cert == "" || f.Key == "" || f.CA == ""), "--cluster-tls-mode is %v; that needs --cluster-tls-cert, --cluster-tls-key and --cluster-tls-ca", c.ClusterTLSMode)
	refuse(c.GossipVerify != gossip.VerifyFull && c.GossipKeysFile == "", "--gossip-verify is %v; that needs --gossip-keys-file", c.GossipVerify)
	found = append(found, checkNodeID(c.NodeID))
	refuse(c.JoinInvitationFile != "" && c.expect() > 0, "--join-invitation-file needs --join, without --bootstrap-expect: an invitation is to a cluster that exists")
	refuse(c.NonVoter && c.expect() > 0, "--non-voter needs --join, without --bootstrap-expect: a new cluster begins with voters")
	for _, name := range listOf(c.HTTPHosts) {
		refuse(strings.ContainsAny(name, ":/ []") || strings.Contains(name[1:], "*"), "--http-hosts has %q; it takes names without a port, and * in front only", name)
	}
	refuse(c.MaxBodyBytes < 1 || c.MaxBodyBytes > job.HardMaxBodyBytes, "--max-body-bytes is %d; it must be between 1 and %d", c.MaxBodyBytes, job.HardMaxBodyBytes)
	refuse(c.BeanstalkMaxJob < 1 || c.BeanstalkMaxJob > beanstalk.HardMaxJobSize, "--beanstalk-max-job-size is %d; it must be between 1 and %d", c.BeanstalkMaxJob, beanstalk.HardMaxJobSize)
	refuse(c.MaxConnections < 1, "--max-connections is %d; it must be 1 or more", c.MaxConnections)
	refuse(c.CacheBytes < 1<<20, "--cache-bytes is %d; it must be at least %d", c.CacheBytes, 1<<20)
	refuse(c.MetricsTopics < 0 || c.MetricsTopics > cluster.MaxMetricsTopics, "--metrics-topics is %d; it must be between 0 and %d", c.MetricsTopics, cluster.MaxMetricsTopics)
	refuse(c.MaxClockOffset < minClockOffset || c.MaxClockOffset > maxClockOffset, "--max-clock-offset is %v; it must be between %v and %v", c.MaxClockOffset, minClockOffset, maxClockOffset)
	found = append(found, c.Backups.check(c.DataDir))
	refuse(c.UI != uiOn && c.UI != uiReadOnly && c.UI != uiOff, "--ui is %q; it must be %s, %s or %s", c.UI, uiOn, uiReadOnly, uiOff)
	refuse(c.LogFormat != "text" && c.LogFormat != "json", "--log-format is %q; it must be text or json", c.LogFormat)
	return errors.Join(found...)
}

func (c *serverConfig) checkAddress(a flagged) error {
	if path, isFile := strings.CutPrefix(a.addr, unixPrefix); isFile && strings.HasPrefix(a.flag, "beanstalk-") {
		if path == "" || len(path) > maxSocketPath {
			return fmt.Errorf("--%s names a socket file by a path of %d bytes; it takes 1 to %d", a.flag, len(path), maxSocketPath)
		}
		return nil
	}
	host, _, err := net.SplitHostPort(a.addr)
	if err != nil {
		return fmt.Errorf("--%s is %q; it must be host:port", a.flag, a.addr)
	}
	if !c.Insecure && !loopback(host) && !c.closed(a.flag) {
		return fmt.Errorf("--%s is %q, which other machines may reach, and whoever does can do everything, unless tokens are enforced (docs/tokens.md). "+
			"Listen on 127.0.0.1, or, where the network lets nobody else in, say so with --insecure (TARRY_INSECURE=true)", a.flag, a.addr)
	}
	return nil
}

// flagged is an address, and the flag that names it.
type flagged struct{ flag, addr string }

// addresses are all that the node listens on.
func (c *serverConfig) addresses() []flagged {
	list := []flagged{{"http-addr", c.HTTPAddr}}
	for _, t := range c.tubeListeners() {
		list = append(list, flagged{t.flag, t.addr})
	}
	list = append(list, flagged{"cluster-addr", c.ClusterAddr}, flagged{"gossip-addr", c.GossipAddr})
	if c.PprofAddr != "" {
		list = append(list, flagged{"pprof-addr", c.PprofAddr})
	}
	return list
}

// closed reports whether an address lets nobody in without a certificate or a key.
func (c *serverConfig) closed(flag string) bool {
	switch flag {
	case "cluster-addr":
		return c.ClusterTLSMode == nodetls.Require
	case "gossip-addr":
		return c.GossipKeysFile != "" && c.GossipVerify == gossip.VerifyFull
	case "http-addr":
		return c.HTTPTLS.closed()
	case "beanstalk-addr", "beanstalk-listen":
		return c.BeanstalkTLS.closed()
	}
	return false
}

// The values of --ui.
const (
	uiOn       = "on"
	uiReadOnly = "readonly"
	uiOff      = "off"
)

// loopback reports whether only this machine can reach a listener at host. Of
// names it knows only localhost: any other may be resolved to anything.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkNodeID returns an error unless a node may have the id.
func checkNodeID(id string) error {
	if n := len(id); n < 1 || n > cluster.MaxNodeIDBytes {
		return fmt.Errorf("--node-id has %d bytes; it takes 1 to %d", n, cluster.MaxNodeIDBytes)
	}
	return job.CheckID("--node-id", id)
}

// advertiseHost is the name by which others reach this node: the one given, or
// else the machine's own when the node listens on all of its addresses.
func (c *serverConfig) advertiseHost() (string, error) {
	host, _, err := net.SplitHostPort(c.ClusterAddr)
	if ip := net.ParseIP(host); c.AdvertiseHost != "" || err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return c.AdvertiseHost, err
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("--cluster-addr %s needs a name for others to use, and this machine has none (%w): set --advertise-host", c.ClusterAddr, err)
	}
	return name, nil
}

// advertisedHTTP is the address by which clients reach this node, as other nodes
// tell them.
func (c *serverConfig) advertisedHTTP() string {
	host, port, err := net.SplitHostPort(c.HTTPAddr)
	if err != nil || c.AdvertiseHost == "" {
		return c.HTTPAddr
	}
	ip := net.ParseIP(host)
	if host == "" || ip != nil && ip.IsUnspecified() {
		host = c.AdvertiseHost
	}
	return net.JoinHostPort(host, port)
}

// unixPrefix starts an address that is a socket file, as with beanstalkd's -l.
const unixPrefix = "unix:"

// beanstalkAddr is where beanstalkd clients are served; empty: nowhere.
func (c *serverConfig) beanstalkAddr() string {
	if c.BeanstalkAddr == "off" {
		return ""
	}
	return c.BeanstalkAddr
}

// hosts are the names by which clients may call this node.
func (c *serverConfig) hosts() []string {
	listens, _, _ := net.SplitHostPort(c.HTTPAddr) // checked
	return slices.DeleteFunc(append(listOf(c.HTTPHosts), c.AdvertiseHost, listens), func(s string) bool { return s == "" })
}

// seeds are the addresses of --join.
func (c *serverConfig) seeds() []string { return listOf(c.Join) }

// listOf splits a list at its commas.
func listOf(text string) []string {
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// expect is how many nodes start a new cluster: one where no other is named.
func (c *serverConfig) expect() int {
	switch {
	case c.BootstrapExpect >= 0:
		return c.BootstrapExpect
	case len(c.seeds()) > 0:
		return 0
	}
	return 1
}

// logLevel is a slog.Level whose error names the levels.
type logLevel slog.Level

func (l *logLevel) UnmarshalText(text []byte) error {
	if (*slog.Level)(l).UnmarshalText(text) != nil {
		return errors.New("it must be debug, info, warn or error")
	}
	return nil
}

func (l logLevel) MarshalText() ([]byte, error) { return slog.Level(l).MarshalText() }
