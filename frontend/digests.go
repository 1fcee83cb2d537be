package frontend

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
)

// Digests makes the blobs of weights that lie in a model's files. Most of the time that a recording takes goes into their
// digests, so these are computed together, on all cores.
type Digests struct {
	// Unread names contents by where they lie, and reads none of them; see [Options.Unread].
	Unread bool
	// Refer allows blobs that read the model's files later: [Options].Mapped or External.
	Refer bool

	pending  []*ir.Blob
	faults   []error            // of what was made at once
	progress func(done float64) // nil: nobody watches
	half     bool               // of the progress, the second half is that of Compute
}

// NewDigests returns digests for a recording with options, whose progress has two halves if anything can be left to Compute:
// weights are got ready, and then those that lie in files are read. How long the second one takes is not known before.
func NewDigests(o Options) *Digests {
	return &Digests{Unread: o.Unread, Refer: o.Mapped || o.External != "", progress: o.Progress, half: o.External != "" || o.Mapped && !o.Unread}
}

// Ready says which share of the weights is ready.
func (d *Digests) Ready(share float64) {
	switch {
	case d.progress == nil:
	case d.half:
		d.progress(share / 2)
	default:
		d.progress(share)
	}
}

// External returns a blob that refers to data at an offset of the file that the module will call path.
func (d *Digests) External(path string, offset int64, data []byte) *ir.Blob {
	b := ir.ExternalBlob(path, offset, int64(len(data)), ir.Digest{})
	if err := b.Attach(data); err != nil {
		panic(err) // cannot happen: the length is that of data
	}
	d.pending = append(d.pending, b)
	return b
}

// Mapped returns an embedded blob of data, which lies at an offset of the model's file of that name.
func (d *Digests) Mapped(name string, offset int64, data []byte) *ir.Blob {
	if d.Unread {
		return ir.MappedBlob(data, sha256.Sum256(fmt.Appendf(nil, "%d bytes at %d of %q", len(data), offset, name)))
	}
	b := ir.MappedBlob(data, ir.Digest{})
	d.pending = append(d.pending, b)
	return b
}

// Compute gives all blobs their digests. Until then they have none, and nothing may compare them.
func (d *Digests) Compute(ctx context.Context) error {
	todo := d.pending
	d.pending = nil
	if err := errors.Join(d.faults...); err != nil {
		return err
	}
	size := int64(0)
	for _, b := range todo {
		size += b.Length
	}
	var one sync.Mutex // progress is told by one goroutine at a time
	read := int64(0)
	hashed := func(n int) {
		if d.progress == nil || !d.half {
			return
		}
		one.Lock()
		defer one.Unlock()
		read += int64(n)
		d.progress(min(1, 0.5+0.5*float64(read)/float64(max(1, size))))
	}
	faults := make([]error, len(todo))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(len(todo), runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(todo); i = int(next.Add(1)) - 1 {
				// A file that is cut while it is mapped faults in this goroutine, where no caller could catch it.
				faults[i] = mmap.Guard(func() error {
					var err error
					todo[i].Digest, err = todo[i].Sum(ctx, hashed)
					return err
				})
				if faults[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	err := errors.Join(faults...)
	if err == nil && size == 0 {
		hashed(1) // there was nothing to read
	}
	return err
}
