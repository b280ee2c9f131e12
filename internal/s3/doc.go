// Package s3 keeps files as objects in a bucket of an S3-compatible store. It is the only
// one that uses the library for that, and knows nothing of what is in the files.
//
//	location.go  s3://BUCKET/PREFIX, and how the store is reached
//	bucket.go    list, put, read and remove
package s3
