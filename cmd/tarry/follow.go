package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tarry/client"
	"tarry/cluster/standby"
	"tarry/job"
)

// followFlags say where the primary of a standby is, and how a node of the standby calls it.
type followFlags struct {
	addrs string
	token clientToken
	tls   clientTLS
}

func (f *followFlags) settings() []setting {
	return []setting{
		{name: "follow", to: &f.addrs, values: "a list of URLs or `host:port`",
			help: "HTTP addresses of the primary's nodes, such as `https://p1:7300,https://p2:7300`, for a node of a standby; without effect once that was promoted (docs/standby.md)",
			why:  "Most clusters are nobody's standby."},
		{name: "follow-token-file", to: &f.token.file, values: "the path of a file with a token",
			help: "with --follow: `file` with a token of the primary that has the verb operate",
			why:  "A primary without tokens needs none."},
		{name: "follow-token-over-http", to: &f.token.overHTTP,
			help: "with --follow: send the token without TLS to other machines, too",
			why:  "The token lets its holder read everything."},
		{name: "follow-tls-ca", to: &f.tls.ca, values: "the path of a PEM file",
			help: "with --follow: PEM `file` with the authorities of the primary's certificates; default: those of the system",
			why:  "Certificates of public authorities need none."},
		{name: "follow-tls-cert", to: &f.tls.cert, values: "the path of a PEM file",
			help: "with --follow: PEM `file` with a certificate, for nodes that ask for one",
			why:  "Few nodes ask their clients for a certificate."},
		{name: "follow-tls-key", to: &f.tls.key, values: "the path of a PEM file",
			help: "with --follow: PEM `file` with its key",
			why:  "As above."},
	}
}

// source returns where the log of the primary comes from; nil: nowhere.
func (f *followFlags) source() (standby.Source, error) {
	if f.addrs == "" {
		if f.token != (clientToken{}) || f.tls != (clientTLS{}) {
			return nil, errors.New("--follow-token-file, --follow-token-over-http and --follow-tls-* need --follow")
		}
		return nil, nil
	}
	certificates, err := f.tls.config()
	if err != nil {
		return nil, fmt.Errorf("--follow: %w", err)
	}
	c, err := client.New(nodesAt(f.addrs), append(f.token.options(), client.WithTLS(certificates))...)
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
