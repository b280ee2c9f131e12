// Package backup is the format of backup files: a header, the bytes of a state in
// compressed blocks with a checksum each, and a checksum of the whole. It does not depend on
// what the state is.
//
//	format.go  the format, the header and its limits
//	writer.go  Writer: compresses what is written to it
//	reader.go  Reader: checks and decompresses a file, in bounded memory
//
// A file may come from anywhere: the Reader trusts no length before it has checked it. The
// files in testdata were written by earlier builds, and each release must read them.
// Start at format.go.
package backup
