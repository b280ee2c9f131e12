package groupcommit

import "time"

const (
	// MaxBatchBytes bounds the operations of one Raft entry. Larger entries
	// delay heartbeats behind them; hashicorp/raft suggests 512 KiB at most.
	// One request larger than this travels alone.
	MaxBatchBytes = 256 << 10

	// MaxPartBytes bounds what one call has in an entry, unless it is one operation. A
	// call's parts wait for one another, so fewer, larger ones are faster.
	MaxPartBytes = 1 << 20

	// MaxEntryBytes bounds that operation, and so every entry. Every operation within
	// the limits of package job is below it. The log's own limit is about four times as
	// much.
	MaxEntryBytes = 16 << 20

	// MaxInFlight is how many batches of one node may be in flight at once. On
	// the leader the second and third are sent only if they are large: they keep
	// the disk busy while the first waits for the network. Several small batches
	// would use more disk and processor time than one that waits for the commit. A
	// follower does not wait, because the leader merges the batches of all followers
	// (figures: docs/benchmarks-choices.md).
	MaxInFlight = 3

	// largeBatch is the size from which waiting for more requests gains nothing.
	largeBatch = 64 << 10

	// MaxQueuedBytes bounds what waits in the Batcher; past it requests are
	// refused as overload.
	MaxQueuedBytes = 64 << 20

	// maxQueuedRequests bounds the memory of small requests in addition to their bytes.
	maxQueuedRequests = 1 << 16

	// littleBytes and littleRequests of one tenant are let in also past these bounds, unless it
	// is past twice as much.
	littleBytes    = 64 << 10
	littleRequests = 64

	// batchRequests is room for the requests of most batches.
	batchRequests = 1 << 10

	// RetryPause is the pause before a batch is sent again to a leader that did not
	// accept it.
	RetryPause = 20 * time.Millisecond

	// enqueueTimeout bounds how long Raft may take to accept an entry. After this
	// timeout nothing was applied.
	enqueueTimeout = 2 * time.Second
)
