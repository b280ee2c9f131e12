package server

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// checkConfigFlag is no setting: neither the environment nor the file has it.
const checkConfigFlag = "check-config"

// checkFiles reads the files that the settings name, where check has found nothing. It changes
// nothing.
func (c *Config) checkFiles() error {
	all := newCertificates(slog.New(slog.DiscardHandler))
	var errs []error
	if f := c.ClusterTLS; f.Cert != "" && f.Key != "" && f.CA != "" {
		_, err := c.nodeTLS(all)
		errs = append(errs, err)
	}
	for _, p := range []struct {
		name string
		tls  *portTLS
	}{{"http", &c.HTTPTLS}, {"beanstalk", &c.BeanstalkTLS}} {
		if p.tls.check(p.name) == nil {
			_, err := p.tls.open(p.name, "", all)
			errs = append(errs, err)
		}
	}
	for _, t := range c.tubeListeners() {
		errs = append(errs, t.checkToken())
	}
	_, gossip := c.gossipKeys()
	_, secrets := c.secretKeys()
	_, primary := c.Follow.source()
	return errors.Join(append(errs, gossip, secrets, primary)...)
}

// reread reads the configuration file again, with the same command line and environment.
func (c *Config) reread() (*Config, error) {
	fresh := &Config{}
	fs := fresh.Flags()
	*fresh = *c.beforeFile
	var err error
	if fresh.fromFile, err = fromFile(fs, maps.Clone(c.given), c.ConfigFile); err != nil {
		return nil, err
	}
	return fresh, fresh.check()
}

// restartNeeded returns the names of the settings that have another text in the file than at the
// start, and need a restart. What was given otherwise has no effect in the file.
func (c *Config) restartNeeded(fresh *Config) (names []string) {
	all := maps.Clone(fresh.fromFile)
	maps.Copy(all, c.fromFile)
	rows := c.settingsByName()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, had := c.fromFile[name]
		is, has := fresh.fromFile[name]
		if (was != is || had != has) && !c.given[name] && !rows[name].live {
			names = append(names, name)
		}
	}
	return names
}

// reload takes over what has changed in the configuration file, and logs the rest.
func (c *Config) reload(log *slog.Logger) {
	if c.ConfigFile == "" {
		return
	}
	fresh, err := c.reread()
	if err != nil {
		log.Error("cannot use the changed configuration file: all settings stay as they are", "file", c.ConfigFile, "error", strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	if was, is := c.level.Level(), fresh.LogLevel; was != is {
		c.level.Set(min(was, is)) // with which the line is logged, if one of the two would
		log.Info("the log level was changed", "from", logLevel(was), "to", logLevel(is))
		c.level.Set(is)
	}
	if names := c.restartNeeded(fresh); len(names) > 0 {
		log.Warn("the configuration file has changed settings that need a restart", "file", c.ConfigFile, "settings", names)
		return
	}
	log.Info("read the configuration file again: no setting needs a restart", "file", c.ConfigFile)
}
