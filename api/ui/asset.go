package ui

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
)

const assetRoot = Root + "assets/"

// asset is a file that pages load. Its address has a part of its digest, so that browsers
// may keep it, and load that of a new release.
type asset struct {
	kind string
	data []byte
}

var assetKinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// assets are by their names in addresses, assetNames by their names in files.
var assets, assetNames = readAssets()

func readAssets() (map[string]asset, map[string]string) {
	byAddress, addresses := map[string]asset{}, map[string]string{}
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		panic(err) // they are part of the binary
	}
	for _, e := range entries {
		data, err := files.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(data)
		ext := path.Ext(e.Name())
		name := e.Name()[:len(e.Name())-len(ext)] + "." + hex.EncodeToString(sum[:6]) + ext
		byAddress[name], addresses[e.Name()] = asset{assetKinds[ext], data}, assetRoot+name
	}
	return byAddress, addresses
}

func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	a, ok := assets[name]
	switch {
	case !ok:
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET")
		http.Error(w, "this address takes GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(a.data)
}
