package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	// Parts are uploaded one after the other, each from memory. The store takes 10,000 at
	// most, of 5 MiB or more.
	minPart  = 8 << 20
	maxParts = 9_000
)

// Bucket is the objects of a bucket whose names begin with a prefix. Names are without it.
// All methods may be called from many goroutines, and block until the store has replied or ctx
// ends.
type Bucket struct {
	client    *minio.Client
	transport *http.Transport
	name      string
	prefix    string // empty, or ends with a slash
}

// Object is what a list says of an object.
type Object struct {
	Name     string
	Bytes    int64
	Modified time.Time
	Tag      string // changes with the content
}

func (b *Bucket) String() string { return strings.TrimSuffix(scheme+b.name+"/"+b.prefix, "/") }

// Close closes connections that nobody uses.
func (b *Bucket) Close() { b.transport.CloseIdleConnections() }

// List returns the objects directly below the prefix, ordered by name. It fails with more than
// limit names there, those that end in a slash among them.
func (b *Bucket) List(ctx context.Context, limit int) (list []Object, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the library's goroutine
	names := 0
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix}) {
		if o.Err != nil {
			return nil, fmt.Errorf("list %s: %w", b, plain(o.Err))
		}
		if names++; names > limit {
			return nil, fmt.Errorf("list %s: it has more than %d objects and directories", b, limit)
		}
		name := strings.TrimPrefix(o.Key, b.prefix)
		if name == "" || strings.HasSuffix(name, "/") {
			continue
		}
		list = append(list, Object{Name: name, Bytes: o.Size, Modified: o.LastModified, Tag: o.ETag})
	}
	return list, nil
}

// Put makes an object of all that from has. It appears when it is complete: an error, of from
// too, or the end of ctx leave none. atMost is about what from has at most, in bytes; the
// memory that Put takes grows with it, from 8 MiB at 75 GB.
func (b *Bucket) Put(ctx context.Context, name string, from io.Reader, atMost int64) (size int64, err error) {
	done, err := b.client.PutObject(ctx, b.name, b.prefix+name, from, -1, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: uint64(max(minPart, atMost/maxParts)),
	})
	if err != nil {
		return 0, fmt.Errorf("write %s to %s: %w", name, b, plain(err))
	}
	return done.Size, nil
}

// Abandoned removes what is left of uploads that ended without a reply and began before an
// instant: nobody sees them, and they cost as much as objects. mine selects names.
func (b *Bucket) Abandoned(ctx context.Context, before time.Time, mine func(name string) bool) error {
	core := minio.Core{Client: b.client}
	listing, cancel := context.WithCancel(ctx)
	defer cancel() // ends the library's goroutine
	for u := range b.client.ListIncompleteUploads(listing, b.name, b.prefix, false) {
		if u.Err != nil {
			return fmt.Errorf("list the incomplete uploads of %s: %w", b, plain(u.Err))
		}
		if !mine(strings.TrimPrefix(u.Key, b.prefix)) || !u.Initiated.Before(before) {
			continue
		}
		if err := core.AbortMultipartUpload(ctx, b.name, u.Key, u.UploadID); err != nil && !errors.Is(plain(err), fs.ErrNotExist) {
			return fmt.Errorf("remove an incomplete upload of %s: %w", b, plain(err))
		}
	}
	return nil
}

// Has reports whether there is an object of this name.
func (b *Bucket) Has(ctx context.Context, name string) (bool, error) {
	_, err := b.client.StatObject(ctx, b.name, b.prefix+name, minio.StatObjectOptions{})
	if err = plain(err); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Get returns the content of an object, or an error that wraps fs.ErrNotExist. The caller
// closes it.
func (b *Bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	body, _, _, err := minio.Core{Client: b.client}.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s from %s: %w", name, b, plain(err))
	}
	return body, nil
}

// ReaderAt reads parts of an object of a size, each with a request of its own, until ctx ends.
func (b *Bucket) ReaderAt(ctx context.Context, name string, size int64) io.ReaderAt {
	return part{ctx, b, name, size}
}

type part struct {
	ctx  context.Context
	of   *Bucket
	name string
	size int64
}

// ReadAt implements io.ReaderAt.
func (p part) ReadAt(into []byte, at int64) (int, error) {
	if at >= p.size {
		return 0, io.EOF
	}
	want := into[:min(int64(len(into)), p.size-at)]
	var o minio.GetObjectOptions
	if err := o.SetRange(at, at+int64(len(want))-1); err != nil {
		return 0, err
	}
	body, _, _, err := minio.Core{Client: p.of.client}.GetObject(p.ctx, p.of.name, p.of.prefix+p.name, o)
	if err != nil {
		return 0, fmt.Errorf("read %s from %s: %w", p.name, p.of, plain(err))
	}
	n, err := io.ReadFull(body, want)
	if err = errors.Join(err, body.Close()); err == nil && n < len(into) {
		err = io.EOF
	}
	return n, err
}

// Remove removes an object, if it is there.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	if err := plain(b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{})); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s from %s: %w", name, b, err)
	}
	return nil
}
