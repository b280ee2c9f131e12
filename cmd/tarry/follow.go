package main

import (
	"context"
	"errors"
	"flag"
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

func (f *followFlags) flags(fs *flag.FlagSet) {
	fs.StringVar(&f.addrs, "follow", "", "HTTP addresses of the primary's nodes, such as `https://p1:7300,https://p2:7300`, for a node of a standby; without effect once that was promoted (docs/standby.md)")
	fs.StringVar(&f.token.file, "follow-token-file", "", "with --follow: `file` with a token of the primary that has the verb operate")
	fs.BoolVar(&f.token.overHTTP, "follow-token-over-http", false, "with --follow: send the token without TLS to other machines, too")
	fs.StringVar(&f.tls.ca, "follow-tls-ca", "", "with --follow: PEM `file` with the authorities of the primary's certificates; default: those of the system")
	fs.StringVar(&f.tls.cert, "follow-tls-cert", "", "with --follow: PEM `file` with a certificate, for nodes that ask for one")
	fs.StringVar(&f.tls.key, "follow-tls-key", "", "with --follow: PEM `file` with its key")
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
