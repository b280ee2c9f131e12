package backupschedule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"tarry/cluster/backup"
	"tarry/internal/s3"
)

// maxObjects bounds the objects that a place in a bucket may have.
const maxObjects = 20_000

// bucket is a place in a bucket of an object store, which all nodes share. An object has its
// name as soon as it is complete, unlike a file, which is read back first. One that cannot be
// read back is removed again.
type bucket struct {
	reading
	*s3.Bucket
	incarnation string // of this node
}

// check returns an error unless an object can be written, read and removed.
func (b *bucket) check(ctx context.Context) error {
	probe := "tarry-probe-" + b.incarnation // another node must not remove it meanwhile
	if _, err := b.Put(ctx, probe, strings.NewReader(probe), 0); err != nil {
		return err
	}
	r, err := b.Get(ctx, probe)
	if err != nil {
		return err
	}
	return errors.Join(r.Close(), b.Remove(ctx, probe))
}

// prepare removes what uploads have left that nobody can be making any more.
func (b *bucket) prepare(ctx context.Context) error {
	return b.Abandoned(ctx, time.Now().Add(-abandoned), completeName.MatchString)
}

// list implements place.
func (b *bucket) list(ctx context.Context) ([]File, error) {
	objects, err := b.List(ctx, maxObjects)
	if err != nil {
		return nil, err
	}
	found := make([]stored, len(objects))
	for i, o := range objects {
		found[i] = stored{o.Name, o.Bytes, o.Tag + " " + o.Modified.String()}
	}
	return b.files(found, func(s stored, read func(io.ReaderAt) error) error {
		return read(b.ReaderAt(ctx, s.name, s.size))
	}), ctx.Err()
}

func (b *bucket) open(ctx context.Context, f *File, read func(io.ReaderAt) error) error {
	return read(b.ReaderAt(ctx, f.Name, f.Bytes))
}

// create uploads a backup while write writes it, and reads it back.
func (b *bucket) create(ctx context.Context, instantMS int64, write func(context.Context, io.Writer) error) (made File, err error) {
	ctx, cancel := context.WithCancel(ctx)
	from, to := io.Pipe()
	var writing sync.WaitGroup
	defer writing.Wait()
	defer from.Close() // a write that waits fails
	defer cancel()
	writing.Go(func() { to.CloseWithError(write(ctx, to)) })

	// The name has the index, which is in the header.
	var begun bytes.Buffer
	r, err := backup.NewReader(io.TeeReader(from, &begun))
	if err != nil {
		return File{}, err
	}
	header := r.Header
	r.Close()
	name := fileName(instantMS, header.Index)
	if there, err := b.Has(ctx, name); err != nil || there {
		return File{}, errors.Join(fmt.Errorf("%s has %s already", b, name), err)
	}
	if _, err := b.Put(ctx, name, io.MultiReader(&begun, from), header.StateBytes); err != nil {
		return File{}, err
	}
	if made, err = b.readBack(ctx, name, instantMS, header.Index); err != nil {
		return File{}, errors.Join(fmt.Errorf("read it back: %w", err), b.undo(ctx, name))
	}
	return made, nil
}

// undo removes an object that was just made, also if ctx has ended.
func (b *bucket) undo(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return b.Remove(ctx, name)
}

func (b *bucket) readBack(ctx context.Context, name string, instantMS int64, index uint64) (File, error) {
	body, err := b.Get(ctx, name)
	if err != nil {
		return File{}, err
	}
	made, err := b.all(ctx, body, instantMS)
	if err == nil && made.Index != index {
		err = fmt.Errorf("it has index %d and not %d", made.Index, index)
	}
	return made, errors.Join(err, body.Close())
}

func (b *bucket) remove(ctx context.Context, name string) error { return b.Remove(ctx, name) }
