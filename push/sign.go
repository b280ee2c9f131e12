package push

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Headers of a post; headers.go adds the job's own.
const (
	headerID        = "Tarry-Job-Id" // escaped like a segment of a path
	headerTopic     = "Tarry-Topic"  // escaped likewise
	headerAttempt   = "Tarry-Attempt"
	headerDue       = "Tarry-Due"       // RFC 3339 in UTC
	headerTimestamp = "Tarry-Timestamp" // Unix seconds of the post
	headerSignature = "Tarry-Signature"
)

// sign returns the signature of a post: "v1=" and the hex form of HMAC-SHA256 over the
// timestamp, the id as in its header, and the body. The first two end with a line feed
// and cannot contain one, so each input has one meaning. The timestamp lets receivers
// reject replayed posts.
func sign(secret, timestamp, id string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "\n" + id + "\n"))
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}
