package server

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tarry/client"
	"tarry/cluster/standby"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

// followFlags say where the primary of a standby is, and how a node of the standby calls it.
type followFlags struct {
	addrs string
	token cli.ClientToken
	tls   cli.ClientTLS
}

func (f *followFlags) settings() []Setting {
	return []Setting{
		{Name: "follow", To: &f.addrs, Values: "a list of URLs or `host:port`",
			help: "HTTP addresses of the primary's nodes, such as `https://p1:7300,https://p2:7300`, for a node of a standby; without effect once that was promoted (docs/standby.md)",
			Why:  "Most clusters are nobody's standby."},
		{Name: "follow-token-file", To: &f.token.File, Values: "the path of a file with a token",
			help: "with --follow: `file` with a token of the primary that has the verb operate",
			Why:  "A primary without tokens needs none."},
		{Name: "follow-token-over-http", To: &f.token.OverHTTP,
			help: "with --follow: send the token without TLS to other machines, too",
			Why:  "The token lets its holder read everything."},
		{Name: "follow-tls-ca", To: &f.tls.CA, Values: "the path of a PEM file",
			help: "with --follow: PEM `file` with the authorities of the primary's certificates; default: those of the system",
			Why:  "Certificates of public authorities need none."},
		{Name: "follow-tls-cert", To: &f.tls.Cert, Values: "the path of a PEM file",
			help: "with --follow: PEM `file` with a certificate, for nodes that ask for one",
			Why:  "Few nodes ask their clients for a certificate."},
		{Name: "follow-tls-key", To: &f.tls.Key, Values: "the path of a PEM file",
			help: "with --follow: PEM `file` with its key",
			Why:  "As above."},
	}
}

// source returns where the log of the primary comes from; nil: nowhere.
func (f *followFlags) source() (standby.Source, error) {
	if f.addrs == "" {
		if f.token != (cli.ClientToken{}) || f.tls != (cli.ClientTLS{}) {
			return nil, errors.New("--follow-token-file, --follow-token-over-http and --follow-tls-* need --follow")
		}
		return nil, nil
	}
	certificates, err := f.tls.Config()
	if err != nil {
		return nil, fmt.Errorf("--follow: %w", err)
	}
	c, err := client.New(cli.NodesAt(f.addrs), append(f.token.Options(), client.WithTLS(certificates))...)
	if err != nil {
		return nil, fmt.Errorf("--follow: %w", err)
	}
	return primaryLog{c}, nil
}

// primaryLog is the log of the primary, from any of its nodes.
type primaryLog struct{ client *client.Client }

// Open implements standby.Source.
func (p primaryLog) Open(ctx context.Context, o job.LogOptions) (io.ReadCloser, string, error) {
	stream, node, err := p.client.Backups().Log(ctx, client.LogPosition{Cluster: o.ClusterID, After: o.After, Term: o.Term})
	if err == nil {
		return stream, node, nil
	}
	var refused *client.Error
	if errors.As(err, &refused) {
		return nil, "", job.Errorf(job.Code(refused.Code), "%w", err)
	}
	return nil, "", err
}
