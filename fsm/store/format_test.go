package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Nodes of two releases read these formats, and a release opens the data of the previous
// one. A change needs a new version and a reader of the old one.
func TestFormatsNeverChange(t *testing.T) {
	require.EqualValues(t, 3, manifestIndexVersion)
	require.EqualValues(t, 2, archiveVersion)
	require.EqualValues(t, 20, storeFormat)

	index := manifestIndex{number: 9, prefix: filePrefix{500, 6}}
	require.Equal(t, "\x03\x09\xf4\x03\x06\x77\x7c\x95\xf0", string(index.encode()))
	var old manifestIndex
	require.NoError(t, old.decode(withSum("\x03\x09\x05\x06\x04\xe8\x07\x07\xac\x02\x00\x00")))
	require.EqualValues(t, 9, old.number)
	require.Equal(t, filePrefix{5, 6}, old.prefix)
	require.Equal(t, map[uint64]filePrefix{300: {}, 4: {size: 1000, sum: 7}}, old.oldLogs)

	head := archiveIndex{Header: Header{Index: 7, Term: 2, Version: 1}, files: []archiveFile{{name: "a.sst", size: 258}}}
	require.Equal(t, "TARRYSNP\x00\x00\x00\x02\x00\x00\x00\x26"+
		"\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x01"+
		"\x05a.sst\x00\x00\x00\x00\x00\x00\x01\x02", string(head.appendHead(nil)[:archivePreambleLen+38]))

	head.incremental = true
	head.files = append(head.files, archiveFile{name: "b.sst", size: 3, inBase: true, tail: 0x01020304})
	require.EqualValues(t, 3, incrementalVersion)
	require.Equal(t, "TARRYSNP\x00\x00\x00\x03\x00\x00\x00\x3e"+
		"\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02"+
		"\x05a.sst\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x00"+
		"\x05b.sst\x00\x00\x00\x00\x00\x00\x00\x03\x01\x01\x02\x03\x04", string(head.appendHead(nil)[:archivePreambleLen+0x3e]))
}
