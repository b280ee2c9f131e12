package ops

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/certs"
	"tarry/job"
)

const (
	certText = `Makes the certificates with which nodes prove to each other who they are, and with
which clients and nodes find out that they talk to each other (docs/tls.md). It calls no
node: everything is in files. Keep the authority's key off the nodes: whoever has it can be
any node, and any token where certificates may name one.`

	caTime   = 10 * 365 * 24 * time.Hour
	leafTime = 365 * 24 * time.Hour
)

func CertCommand() *cobra.Command {
	return cli.Group("cert", "certificates: ca, node, server, client, token, show, renew", certText,
		certCACommand(),
		certIssueCommand(certs.RoleNode, "make a node's certificate", "ID", "Makes the key and the certificate of the node with this --node-id. Other nodes check the id\nand need no host; give hosts if the node shows the same certificate to its clients.",
			"tarry cert node n1"),
		certIssueCommand(certs.RoleServer, "make a certificate that clients check", "NAME", "Makes a key and a certificate for the ports of HTTP and beanstalkd, for the hosts by which\nclients call the node. It is not good for a node among nodes.",
			"tarry cert server queue --host queue.example --host 10.0.0.5"),
		certIssueCommand(certs.RoleClient, "make a client's certificate", "NAME", "Makes a key and a certificate for a producer, a consumer or an operator, for ports with\n--http-client-ca or --beanstalk-client-ca.",
			"tarry cert client billing"),
		certIssueCommand(certs.RoleToken, "make a certificate of a client with a token", "ID", "Makes a key and a certificate for a client that may do what the token with this id allows, and\nsends no text of it (docs/tokens.md). The token is looked up with every call: it need not be\nthere yet, and a certificate of one that is revoked or has ended is good for nothing.",
			"tarry cert token billing"),
		certShowCommand(), certRenewCommand())
}

// certFlags are those of the commands that sign.
type certFlags struct {
	dir, ca, caKey string
	valid          cli.Duration
	hosts          []string
}

// register adds the flags of a command that signs with an authority.
func (f *certFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.ca, "ca", "ca.crt", "`file` with the certificate of the authority")
	c.Flags().StringVar(&f.caKey, "ca-key", "ca.key", "`file` with the key of the authority")
	f.registerValid(c, leafTime)
}

func (f *certFlags) registerValid(c *cobra.Command, standard time.Duration) {
	f.valid = cli.Duration{Value: standard, Positive: true}
	c.Flags().Var(&f.valid, "valid", "`time` for which the certificate is valid, such as 90d")
}

func (f *certFlags) registerDir(c *cobra.Command) {
	c.Flags().StringVar(&f.dir, "dir", ".", "existing `directory` for the two files")
}

// end is the end of a certificate that is made now.
func (f *certFlags) end() (now, end time.Time) {
	now = time.Now()
	return now, now.Add(f.valid.Value)
}

func certCACommand() *cobra.Command {
	f, cluster := &certFlags{}, ""
	c := &cobra.Command{Use: "ca", Short: "make an authority for a cluster", Args: cli.FlagsOnly,
		Long:    "Makes the authority that signs the certificates of one cluster: ca.crt, which every node gets,\nand ca.key, which no node gets. Existing files are never overwritten.",
		Example: "  tarry cert ca --cluster orders"}
	c.Flags().StringVar(&cluster, "cluster", "tarry", "`name` of the cluster, of a-z, 0-9 and -; it stands in all its certificates")
	f.registerDir(c)
	f.registerValid(c, caTime)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := certs.CheckCluster(cluster); err != nil {
			return cli.Usagef("--cluster: %v", err)
		}
		now, end := f.end()
		a, key, err := certs.NewAuthority(cluster, now, end)
		if err != nil {
			return err
		}
		made := madePair{filepath.Join(f.dir, "ca.crt"), filepath.Join(f.dir, "ca.key")}
		return made.report(cmd, certs.WritePair(made.cert, made.key, a.Cert, key))
	}
	return c
}

func certIssueCommand(role certs.Role, short, arg, text, example string) *cobra.Command {
	f := &certFlags{}
	c := &cobra.Command{Use: string(role) + " " + arg, Short: short, Long: text, Example: "  " + example, Args: cli.Arguments(arg, 1, 1)}
	f.register(c)
	f.registerDir(c)
	c.Flags().StringArrayVar(&f.hosts, "host", nil, "DNS `name` or IP address for the certificate; may be repeated")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		name := string(role) + "-" + args[0]
		if filepath.Base(name) != name || strings.Contains(name, `\`) {
			return cli.Usagef("%s %q cannot be part of a file's name", arg, args[0])
		}
		if role == certs.RoleToken {
			if err := job.CheckTokenID("ID", args[0]); err != nil {
				return cli.Usagef("%w", err)
			}
		}
		if role == certs.RoleServer && len(f.hosts) == 0 {
			return cli.Usagef("a server's certificate needs the hosts by which clients call it: give --host")
		}
		a, err := certs.ReadAuthority(f.ca, f.caKey)
		if err != nil {
			return fmt.Errorf("read the authority (--ca, --ca-key; made by tarry cert ca): %w", err)
		}
		now, end := f.end()
		leaf, key, err := a.Issue(role, args[0], f.hosts, now, end)
		if err != nil {
			return err
		}
		made := madePair{filepath.Join(f.dir, name+".crt"), filepath.Join(f.dir, name+".key")}
		return made.report(cmd, certs.WritePair(made.cert, made.key, leaf, key))
	}
	return c
}

// madePair are the two files of a certificate.
type madePair struct{ cert, key string }

func (p madePair) report(cmd *cobra.Command, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; nothing is overwritten: move the old file away, or renew its certificate with tarry cert renew", err)
	}
	if err != nil {
		return err
	}
	out := cli.Printer{To: cmd.OutOrStdout()}
	return errors.Join(out.Line("certificate: %s", p.cert), out.Line("key: %s", p.key))
}

func certShowCommand() *cobra.Command {
	c := &cobra.Command{Use: "show FILE...", Short: "show what certificates are for and when they end", Args: cli.Arguments("FILE...", 1, 100),
		Long: "Shows the certificates in files: whom each names, its hosts, and when it ends.", Example: "  tarry cert show node-n1.crt ca.crt"}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		out, now := cli.Printer{To: cmd.OutOrStdout()}, time.Now()
		for _, path := range args {
			list, err := certs.ReadCertificates(path)
			if err != nil {
				return err
			}
			for _, x := range list {
				who := x.Subject.String()
				if id, err := certs.IdentityOf(x); err == nil {
					who = id.String()
				}
				hosts := x.DNSNames
				for _, ip := range x.IPAddresses {
					hosts = append(hosts, ip.String())
				}
				left := fmt.Sprintf("in %d days", int(x.NotAfter.Sub(now)/(24*time.Hour)))
				if now.After(x.NotAfter) {
					left = "it has ended"
				}
				err := errors.Join(
					out.Line("%s", path),
					out.Line("  of:    %s", who),
					out.Line("  hosts: %s", cli.Dash(strings.Join(hosts, ", "))),
					out.Line("  from:  %s", x.NotBefore.UTC().Format(time.RFC3339)),
					out.Line("  to:    %s (%s)", x.NotAfter.UTC().Format(time.RFC3339), left),
				)
				if err != nil {
					return err
				}
			}
		}
		return nil
	}
	return c
}

func certRenewCommand() *cobra.Command {
	f := &certFlags{}
	c := &cobra.Command{Use: "renew FILE...", Short: "replace certificates by ones that end later", Args: cli.Arguments("FILE...", 1, 100),
		Long:    "Signs certificates again, for the same holder, hosts and key, and replaces each file at once.\nThe keys are not needed and stay as they are. Nodes read the new file without a restart.",
		Example: "  tarry cert renew node-n1.crt node-n2.crt node-n3.crt"}
	f.register(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := certs.ReadAuthority(f.ca, f.caKey)
		if err != nil {
			return fmt.Errorf("read the authority (--ca, --ca-key): %w", err)
		}
		for _, path := range args {
			if err := renew(cmd, a, f, path); err != nil {
				return fmt.Errorf("renew %s: %w", path, err)
			}
		}
		return nil
	}
	return c
}

func renew(cmd *cobra.Command, a *certs.Authority, f *certFlags, path string) error {
	list, err := certs.ReadCertificates(path)
	if err != nil {
		return err
	}
	if len(list) != 1 {
		return fmt.Errorf("it has %d certificates; it must have one", len(list))
	}
	now, end := f.end()
	next, err := a.Renew(list[0], now, end)
	if err != nil {
		return err
	}
	if err := certs.ReplaceCertificate(path, next); err != nil {
		return err
	}
	return cli.Printer{To: cmd.OutOrStdout()}.Line("%s: valid to %s", path, next.NotAfter.UTC().Format(time.RFC3339))
}
