package workload

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// tenantProducer adds jobs to topics of namespaces. One that is refused because of a quota it gives up,
// so it must never be handed out.
type tenantProducer struct{ *producer }

func newTenantProducer(id int, c Config) client {
	return tenantProducer{makeProducer(id, c, c.tenants())}
}

func (p tenantProducer) run(ctx context.Context) {
	defer p.close()
	for think(ctx, p.config, p.rand, 1) {
		j := p.make()
		for {
			node, invoke := p.node(), p.rec.Now()
			a, outcome := p.call(context.WithoutCancel(ctx), http.MethodPost, "/v1/jobs", j, callTimeout)
			p.rec.Record(p.addOp(j, a, outcome, node, invoke))
			if outcome == history.OK || a.Code == "over_quota" || !sleep.For(ctx, retryPause) {
				break
			}
		}
	}
}

// quota creates a namespace and records its quotas.
func (c *caller) quota(ctx context.Context, prefix string, l history.Limits) error {
	quotas := map[string]any{}
	if l.Jobs > 0 {
		quotas["jobs"] = l.Jobs
	}
	if l.AddRate > 0 {
		quotas["rate"] = l.AddRate
	}
	return c.insist(ctx, http.MethodPut, "/v1/namespaces/"+url.PathEscape(strings.TrimSuffix(prefix, ".")), map[string]any{"topic_prefix": prefix, "quotas": quotas},
		history.Op{Kind: history.Quota, Topic: prefix, Limits: &l})
}
