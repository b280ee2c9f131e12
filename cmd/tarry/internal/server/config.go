package server

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

	"tarry/api/httpx"
	"tarry/cluster"
	"tarry/cluster/diskspace"
	"tarry/cluster/logstore"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/nodetls"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/logtail"
	"tarry/internal/certs"
	"tarry/internal/secretkeys"
	"tarry/job"
	"tarry/job/slot"
	"tarry/push"
)

// Config has the settings of `tarry server`, by flag, environment variable or
// configuration file, in that order of precedence.
type Config struct {
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
	CORSOrigins        httpx.Origins
	Insecure           bool
	Join               string
	JoinInvitationFile string
	Follow             followFlags
	BootstrapExpect    int
	Shards             int
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
	beforeFile *Config
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

func (c *Config) Flags() *flag.FlagSet {
	fs := flag.NewFlagSet("tarry server", flag.ContinueOnError)
	c.BootstrapExpect = -1 // it depends
	for _, s := range append(c.AllSettings(), c.unfinishedSettings()...) {
		s.define(fs)
	}
	return fs
}

// unfinishedSettings are flags that do not do all yet that they are for. No help and no page names them.
func (c *Config) unfinishedSettings() []Setting {
	return []Setting{{Name: "shards", To: &c.Shards, check: func(flag string) error {
		if c.Shards == 0 {
			return nil // as the data directory says, or one
		}
		if err := slot.Check(c.Shards); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		return nil
	}, help: "`number` of shards of a new cluster"}}
}

// AllSettings has each flag of tarry server once.
func (c *Config) AllSettings() (all []Setting) {
	for _, g := range c.SettingGroups() {
		all = append(all, g.Flags...)
	}
	return all
}

// settingsByName are those of AllSettings.
func (c *Config) settingsByName() map[string]Setting {
	all := map[string]Setting{}
	for _, s := range c.AllSettings() {
		all[s.Name] = s
	}
	return all
}

// Command is tarry server. Its flags are those of Go's package flag: then the
// environment and the file set them by the same names, and with the same messages.
func Command(env func(string) (string, bool), start func(context.Context, *Config, io.Writer) error) *cobra.Command {
	cfg := &Config{}
	flags := cfg.Flags()
	cmd := &cobra.Command{Use: "server", Short: "run a node until it is stopped", Long: serverText, Example: serverExample, Args: cli.FlagsOnly}
	cmd.Flags().AddGoFlagSet(flags)
	for _, s := range cfg.unfinishedSettings() {
		_ = cmd.Flags().MarkHidden(s.Name) // fails when there is no such flag
	}
	var mistakes []error // on the command line
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Value = collecting{f.Value, flags.Lookup(f.Name), &mistakes} })
	for _, s := range cfg.AllSettings() {
		if s.Words != nil {
			_ = cmd.Flags().SetAnnotation(s.Name, cli.WordsAnnotation, s.Words) // fails when there is no such flag
		}
	}
	check := cmd.Flags().Bool(checkConfigFlag, false, "check all settings and the files that they name, list every mistake, and start nothing; exit code 2 if there is one")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := map[string]bool{}
		cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
		err := errors.Join(errors.Join(mistakes...), cfg.Complete(flags, given, env))
		if *check {
			err = errors.Join(err, cfg.checkFiles())
		}
		if err != nil {
			return cli.UsageError{Err: err}
		}
		if *check {
			return cli.Printer{To: cmd.OutOrStdout()}.Line("no mistake was found in the settings")
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
		*v.mistakes = append(*v.mistakes, fmt.Errorf("invalid value %q for flag --%s: %s", text, v.of.Name, cli.InvalidReason(err)))
	}
	return nil
}

// Complete fills in what the command line left open from the environment and the
// configuration file. Its error joins all mistakes, each of one line.
func (c *Config) Complete(fs *flag.FlagSet, given map[string]bool, env func(string) (string, bool)) error {
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
	return cli.PlainReason(pflag.PFlagFromGoFlag(f).Value.Type(), err)
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
func (c *Config) check() error {
	var found []error
	for _, s := range append(c.AllSettings(), c.unfinishedSettings()...) {
		found = append(found, s.mistakes(c.Insecure))
	}
	return errors.Join(append(found, c.Backups.check(c.DataDir))...)
}

// checkHosts checks the names of --http-hosts.
func (c *Config) checkHosts(flag string) error {
	for _, name := range listOf(c.HTTPHosts) {
		if strings.ContainsAny(name, ":/ []") || strings.Contains(name[1:], "*") {
			return fmt.Errorf("%s has %q; it takes names without a port, and * in front only", flag, name)
		}
	}
	return nil
}

// parseExpect reads --bootstrap-expect.
func (c *Config) parseExpect(text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n > cluster.MaxBootstrapExpect {
		return fmt.Errorf("it must be a whole number from 0 to %d", cluster.MaxBootstrapExpect)
	}
	c.BootstrapExpect = int(n)
	return nil
}

// The values of --ui.
const (
	UIOn       = "on"
	UIReadOnly = "readonly"
	UIOff      = "off"
)

// CheckNodeID returns an error unless a node may have the id.
func CheckNodeID(flag, id string) error {
	if n := len(id); n < 1 || n > cluster.MaxNodeIDBytes {
		return fmt.Errorf("%s has %d bytes; it takes 1 to %d", flag, n, cluster.MaxNodeIDBytes)
	}
	return job.CheckID(flag, id)
}

// advertiseHost is the name by which others reach this node: the one given, or
// else the machine's own when the node listens on all of its addresses.
func (c *Config) advertiseHost() (string, error) {
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
func (c *Config) advertisedHTTP() string {
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

// UnixPrefix starts an address that is a socket file, as with beanstalkd's -l.
const UnixPrefix = "unix:"

// beanstalkAddr is where beanstalkd clients are served; empty: nowhere.
func (c *Config) beanstalkAddr() string {
	if c.BeanstalkAddr == "off" {
		return ""
	}
	return c.BeanstalkAddr
}

// hosts are the names by which clients may call this node.
func (c *Config) hosts() []string {
	listens, _, _ := net.SplitHostPort(c.HTTPAddr) // checked
	return slices.DeleteFunc(append(listOf(c.HTTPHosts), c.AdvertiseHost, listens), func(s string) bool { return s == "" })
}

// Seeds are the addresses of --join.
func (c *Config) Seeds() []string { return listOf(c.Join) }

// listOf splits a list at its commas.
func listOf(text string) []string {
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// expect is how many nodes start a new cluster: one where no other is named.
func (c *Config) expect() int {
	switch {
	case c.BootstrapExpect >= 0:
		return c.BootstrapExpect
	case len(c.Seeds()) > 0:
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
