package api

import (
	"maps"
	"reflect"

	"tarry/api/wire"
)

// What OpenAPI says of a standby: rows of the tables in openapi_tables.go.
func init() {
	maps.Copy(fieldDocs, map[string]fieldDoc{
		"Standby.mode":         says("Whether the cluster never was a standby, follows its primary, or was promoted.").oneOf(standbyModes...),
		"primary":              says("The id of the cluster that it follows, or followed."),
		"Standby.index":        says("The last entry of the primary's log whose effects are here."),
		"term":                 says("The term of that entry."),
		"primary_index":        says("How far the primary was at the last contact."),
		"lag_entries":          says("Entries of the primary's log that it had at the last contact and that are not here."),
		"lag_seconds":          says("How long ago it last had everything: what the primary acknowledged since may be missing. After a promotion it is what it was then. Absent while it is not known."),
		"last_contact_at":      says("When a node of the primary last said how far it is."),
		"caught_up_at":         says("The last instant up to which everything that the primary had applied is here."),
		"promoted_at":          says("When it was promoted."),
		"connected":            says("Whether a node of the primary sends its log."),
		"source":               says("The address of that node."),
		"Standby.problem":      says("Why it does not follow."),
		"reseed":               says("It must be made again from a backup of the primary; absent if not."),
		"Query.index":          says("The last entry of the log that the standby has."),
		"Query.term":           says("The term of that entry."),
		"Query.cluster":        says("The id of the cluster whose log it is."),
		"PromoteRequest.force": says("Promote it although the primary still sends its log."),
	})
	requests["PromoteRequest"] = reflect.TypeFor[wire.PromoteRequest]()
	replies["Standby"] = "success:bool mode primary? index?:int term?:int primary_index?:int lag_entries?:int lag_seconds?:seconds last_contact_at?:time caught_up_at?:time promoted_at?:time connected?:bool source? problem? reseed?:bool"
}
