package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is one file of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

// archiveOf writes tarry_VERSION_OS_ARCH.tar.gz, and the bill of materials beside it.
func (r *release) archiveOf(t target, binary string, e extras) error {
	name := fmt.Sprintf("tarry_%s_%s_%s", r.version, t.os, t.arch)
	var entries []entry
	add := func(as string, mode int64, file string) error {
		data, err := os.ReadFile(file)
		entries = append(entries, entry{path.Join(name, as), mode, data})
		return err
	}
	err := add("tarry", 0o755, binary)
	for _, doc := range []string{"README.md", "CHANGELOG.md", "SECURITY.md"} {
		err = firstError(err, add(doc, 0o644, filepath.Join(r.root, doc)))
	}
	for shell, file := range e.completions {
		err = firstError(err, add("completion/tarry."+shell, 0o644, file))
	}
	for _, page := range e.man {
		err = firstError(err, add("man/"+filepath.Base(page), 0o644, page))
	}
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeArchive(&b, entries, r.time); err != nil {
		return err
	}
	bill, err := billOf(binary, r.version, t)
	if err != nil {
		return err
	}
	return firstError(r.put(name+".tar.gz", b.Bytes()), r.put(name+".cdx.json", bill))
}

// writeArchive writes a tar file, compressed, that depends on nothing but its arguments.
func writeArchive(to io.Writer, entries []entry, at time.Time) error {
	entries = slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.name, b.name) })
	z, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: at, Format: tar.FormatUSTAR, Uname: "root", Gname: "root"}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(e.data); err != nil {
			return err
		}
	}
	return firstError(w.Close(), z.Close())
}

// compress is a file as gzip has it without a name and a time.
func compress(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(data)
	return b.Bytes(), firstError(err, z.Close())
}

// put writes one file of the results.
func (r *release) put(name string, data []byte) error {
	r.files = append(r.files, name)
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// checksums writes SHA256SUMS, which sha256sum --check reads.
func (r *release) checksums() error {
	slices.Sort(r.files)
	var b strings.Builder
	for _, name := range r.files {
		data, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), name)
	}
	return r.put("SHA256SUMS", []byte(b.String()))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
