package wire

import (
	"math"

	"tarry/job"
	"tarry/job/jobpb"
)

// Quotas has the quotas of a namespace; one that is not given does not bound it.
type Quotas struct {
	Jobs   Opt[int64]   `json:"jobs"`
	Bytes  Opt[int64]   `json:"bytes"`
	Topics Opt[int64]   `json:"topics"`
	Rate   Opt[float64] `json:"rate"`
}

// NamespaceRequest is a whole namespace, except its name.
type NamespaceRequest struct {
	TopicPrefix Opt[string] `json:"topic_prefix"`
	IDPrefix    Opt[string] `json:"id_prefix"`
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
