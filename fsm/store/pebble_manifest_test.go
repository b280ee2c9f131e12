package store

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// Pebble syncs a new manifest, makes a marker that names it, and then syncs the names of
// both. A file system may persist the names in another order.
func TestManifestsNameIsDurableBeforeItsMarker(t *testing.T) {
	var steps []string
	record := errorfs.InjectorFunc(func(op errorfs.Op) error {
		base := path.Base(op.Path)
		switch {
		case op.Kind == errorfs.OpCreate && (strings.HasPrefix(base, "MANIFEST-") || strings.HasPrefix(base, "marker.manifest.")):
			steps = append(steps, "create "+base)
		case op.Kind == errorfs.OpFileSync && strings.HasPrefix(base, "gen-"):
			steps = append(steps, "sync names")
		}
		return nil
	})
	o := Options{FS: errorfs.Wrap(vfs.NewMem(), record), OnFatal: func(err error) { t.Error(err) }}
	d, err := OpenDir(testDir, o)
	require.NoError(t, err)
	db, err := d.Open(d.Live())
	require.NoError(t, err)
	require.NoError(t, db.Close())
	marker := slices.IndexFunc(steps, func(s string) bool { return strings.Contains(s, "marker") })
	require.Positive(t, marker)
	manifest := slices.IndexFunc(steps, func(s string) bool { return strings.HasPrefix(s, "create") })
	require.Less(t, manifest, marker)
	require.Contains(t, steps[manifest:marker], "sync names", "%v", steps)
}
