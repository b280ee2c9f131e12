package wire

import (
	"math"

	"tarry/job"
	"tarry/job/jobpb"
)

// Quotas has the quotas of a namespace; one that is not given does not bound it.
type Quotas struct {
	Jobs   Opt[int64]   `json:"jobs" help:"Jobs in all states, also retained ones." limit:"quota"`
	Bytes  Opt[int64]   `json:"bytes" help:"Bytes of the bodies of these jobs." limit:"quota"`
	Topics Opt[int64]   `json:"topics" help:"Topics, and as many with settings. One without jobs counts until it is removed, after an hour." limit:"quota"`
	Rate   Opt[float64] `json:"rate" help:"Jobs added a second through each node, with up to three decimals. A second of them may come at once." limit:"rate"`
}

// NamespaceRequest is a whole namespace, except its name.
type NamespaceRequest struct {
	TopicPrefix Opt[string] `json:"topic_prefix" required:"topic_prefix"`
	IDPrefix    Opt[string] `json:"id_prefix" help:"The ids that producers give to jobs in these topics must begin with it." limit:"name"`
	Description Opt[string] `json:"description"`
	Quotas      Opt[Quotas] `json:"quotas"`
}

// quotas returns what is asked for; nil: none.
func (q *Quotas) quotas() (*jobpb.Quotas, error) {
	made := new(jobpb.Quotas)
	for _, one := range []struct {
		name string
		in   Opt[int64]
		to   **uint64
	}{{"quotas.jobs", q.Jobs, &made.Jobs}, {"quotas.bytes", q.Bytes, &made.Bytes}, {"quotas.topics", q.Topics, &made.Topics}} {
		if one.in.V < 0 || one.in.V > MaxQuota {
			return nil, job.Invalid(one.name, "is %d; it must be between 0 and %d", one.in.V, int64(MaxQuota))
		}
		if one.in.Set {
			*one.to = new(uint64(one.in.V))
		}
	}
	if rate := q.Rate; rate.Set {
		if !(rate.V >= 0.001 && rate.V <= job.MaxRateMilli/1000) {
			return nil, job.Invalid("quotas.rate", "is %v; it must be between 0.001 and %d adds a second", rate.V, job.MaxRateMilli/1000)
		}
		made.RateMilli = new(uint64(math.Round(rate.V * 1000)))
	}
	if made.SizeVT() == 0 {
		return nil, nil
	}
	return made, nil
}

func (q *NamespaceRequest) Namespace(name string) (n *jobpb.Namespace, err error) {
	n = &jobpb.Namespace{Name: name, TopicPrefix: q.TopicPrefix.V, IdPrefix: q.IDPrefix.V, Description: q.Description.V}
	n.Quotas, err = q.Quotas.V.quotas()
	return n, err
}

// MaxQuota is the largest quota of a namespace: all clients read it exactly.
const MaxQuota = 1 << 53

type Namespaces struct {
	Namespaces []Namespace `json:"namespaces" help:"The namespaces."`
}

type Namespace struct {
	Name        string          `json:"name" help:"The name of the namespace."`
	Revision    uint64          `json:"revision"`
	TopicPrefix string          `json:"topic_prefix"`
	IDPrefix    string          `json:"id_prefix,omitzero" help:"The ids that producers give to jobs in its topics begin with it."`
	Description string          `json:"description,omitzero"`
	Quotas      NamespaceQuotas `json:"quotas"`
	Use         NamespaceUse    `json:"use" help:"What the namespace holds."`
}

type NamespaceReply struct{ Namespace }

type NamespacePut struct {
	Name     string `json:"name" help:"The name of the namespace."`
	Revision uint64 `json:"revision"`
	Existing bool   `json:"existing" help:"Whether it was the same before."`
}

type NamespaceDeleted struct {
	Name string `json:"name" help:"The name of the namespace."`
}

type NamespaceUse struct {
	Jobs   uint64 `json:"jobs" help:"Jobs in all states, also retained ones."`
	Bytes  uint64 `json:"bytes" help:"Bytes of the bodies of these jobs."`
	Topics uint64 `json:"topics" help:"Topics."`
}

type NamespaceQuotas struct {
	Jobs   *uint64 `json:"jobs,omitzero" help:"Jobs in all states, also retained ones."`
	Bytes  *uint64 `json:"bytes,omitzero" help:"Bytes of the bodies of these jobs."`
	Topics *uint64 `json:"topics,omitzero" help:"Topics. One without jobs counts until it is removed, after an hour."`
	Rate   float64 `json:"rate,omitzero" help:"Jobs added a second through each node."`
}
