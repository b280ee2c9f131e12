// Package logstream is the format in which a cluster sends the entries of its log to a standby:
// frames with a checksum each. It does not depend on what is in the entries.
//
// Writer writes a stream, Reader checks and reads one in bounded memory.
package logstream
