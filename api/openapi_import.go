package api

import (
	"maps"
	"math"
	"reflect"

	"tarry/api/wire"
	"tarry/job"
)

// What OpenAPI says of an import, beside the tables of the other calls.
func init() {
	requests["ImportItem"] = reflect.TypeFor[wire.ImportItem]()
	requests["ImportBatch"] = reflect.TypeFor[wire.Batch[wire.ImportItem]]()
	maps.Copy(fieldDocs, importDocs)
}

var importDocs = map[string]fieldDoc{
	"ImportBatch.jobs":      says("The jobs to import, 1 to 1000."),
	"ImportItem.state":      says("Which of delayed and ready a job is that waits depends on due_at; a waiting job unless given.").oneOf("delayed", "ready", "dead"),
	"ImportItem.due_at":     says("When the job becomes or became due: RFC 3339 text or milliseconds since 1970. The topic's spread is not added."),
	"ImportItem.delay":      says("The delay that gave it its due time, in seconds.").between(0, (job.MaxDelay + job.MaxSpread).Seconds()),
	"ImportItem.created_at": says("When it was added; now unless given, and at the latest now."),
	"ImportItem.died_at":    says("When a dead job died; now unless given, and at the latest now."),
	"ImportItem.attempts":   says("Attempts so far: fewer than max_attempts, unless the job is dead.").between(0, math.MaxUint32),
	"ImportItem.reserves":   says("How often it was handed out.").between(0, math.MaxUint32),
	"ImportItem.timeouts":   says("How often a reservation expired.").between(0, math.MaxUint32),
	"ImportItem.releases":   says("How often it was given back.").between(0, math.MaxUint32),
	"ImportItem.buries":     says("How often it was set aside.").between(0, math.MaxUint32),
	"ImportItem.kicks":      says("How often it was brought back.").between(0, math.MaxUint32),
	"ImportItem.last_error": says("The last reason that a consumer gave: at most 1000 bytes.").upTo(job.MaxReasonBytes),
}
