package frontend

import (
	"crypto/sha256"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Made returns a blob of contents that follow from the model's files: with Refer they are made when they are asked for
// ([ir.MadeBlob], which says what fill does), else at once. what describes the contents so that no others of the model have the same
// description: with Unread its digest takes the place of theirs. Large contents are made on all cores.
func (d *Digests) Made(what string, length int64, fill func(dst []byte, at int64)) *ir.Blob {
	pieces := func(dst []byte, at int64) error {
		n := (int64(len(dst)) + ir.Piece - 1) / ir.Piece
		return parallel(n, func(i int64) {
			lo := i * ir.Piece
			fill(dst[lo:min(lo+ir.Piece, int64(len(dst)))], at+lo)
		})
	}
	switch {
	case !d.Refer:
		data := make([]byte, length)
		d.faults = append(d.faults, pieces(data, 0))
		return ir.NewBlob(data)
	case d.Unread:
		return ir.MadeBlob(length, sha256.Sum256([]byte(what)), pieces)
	}
	b := ir.MadeBlob(length, ir.Digest{}, pieces)
	d.pending = append(d.pending, b)
	return b
}

// Converted is Made for floats of type `to` that source has as `from`: n of them. source returns so many bytes of the source
// from a byte on.
func (d *Digests) Converted(what string, n int64, to, from ir.DType, source func(at, length int64) []byte) *ir.Blob {
	return d.Made(what+" as "+to.String(), n*to.Size(), func(dst []byte, at int64) {
		in := source(at/to.Size()*from.Size(), int64(len(dst))/to.Size()*from.Size())
		copy(dst, record.Elements(to, record.Numbers(from, in)))
	})
}

// parallel calls do with 0 to n-1, on all cores. A file that is cut while it is mapped faults in the goroutine that reads it,
// where no caller could catch it.
func parallel(n int64, do func(i int64)) error {
	if n <= 1 {
		return mmap.Guard(func() error {
			for i := range n {
				do(i)
			}
			return nil
		})
	}
	faults := make([]error, min(n, int64(runtime.GOMAXPROCS(0))))
	var next atomic.Int64
	var all sync.WaitGroup
	for w := range faults {
		all.Go(func() {
			faults[w] = mmap.Guard(func() error {
				for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
					do(i)
				}
				return nil
			})
		})
	}
	all.Wait()
	return errors.Join(faults...)
}
