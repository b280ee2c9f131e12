package job

import "tarry/job/jobpb"

// MaxStateChunk bounds the parts in which a state enters the log that is to replace another.
const MaxStateChunk = 1 << 20

func checkPutStateChunk(p *jobpb.PutStateChunk) error {
	if p.Upload == 0 {
		return Invalid("upload", "is missing")
	}
	return Within("data", int64(len(p.Data)), 1, MaxStateChunk)
}
