package mlxg

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
)

// hashing compares ranges of one file with the digests that a module has for them. It
// remembers digests for each state of the file, so that not every command must read a large
// model.
type hashing struct {
	path     string      // "" for contents that do not lie in a file
	info     os.FileInfo // of the file, when it was mapped
	data     []byte      // the mapped file
	verify   bool        // compute every digest, even remembered ones
	cache    digests
	progress func(done float64)
	// goOn continues after a range with another digest.
	goOn bool
	// small is the number of hashed bytes below which digests are not remembered.
	small int64
}

// rangeOf is a range and the digest with which it was recorded.
type rangeOf struct {
	fileRange
	digest ir.Digest
}

// maxRehash bounds the bytes that are hashed, as a multiple of the file's size. Ranges in
// honest files hardly ever overlap, but a small file with a hundred thousand overlapping
// ranges would take hours.
const maxRehash = 8

// digests returns the digests of the wanted ranges. It hashes them in their order and,
// unless h.goOn is set, stops after a range whose digest differs from the recorded one. Then
// later ranges may be missing from the result. A remembered digest is used only if it equals
// the recorded one, so that a wrong cache cannot make a right file count as wrong.
func (h *hashing) digests(ctx context.Context, wanted []rangeOf) (map[fileRange]ir.Digest, error) {
	var key fileState
	var known map[fileRange]ir.Digest
	if h.path != "" {
		key = stateOf(realPath(h.path), h.info)
		known = h.cache.load(key)
	}
	out := make(map[fileRange]ir.Digest, len(wanted))
	var todo []rangeOf // distinct ranges
	total := int64(0)
	for _, w := range wanted {
		if _, ok := out[w.fileRange]; ok {
			continue
		}
		if d, ok := known[w.fileRange]; ok && d == w.digest && !h.verify {
			out[w.fileRange] = d
			continue
		}
		out[w.fileRange] = ir.Digest{}
		todo = append(todo, w)
		// INVARIANT: ranges lie in the file, so total cannot overflow.
		if total += w.length; total > maxRehash*int64(len(h.data)) {
			return nil, fmt.Errorf("contents refer to the same bytes of a file again and again: the file has %d bytes, and %d ranges together have more than %d times as many", len(h.data), len(wanted), maxRehash)
		}
	}
	if len(todo) == 0 {
		return out, nil
	}
	got := make([]ir.Digest, len(todo))
	faults := make([]error, len(todo))
	var next atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	var one sync.Mutex // keeps calls of progress apart, and in order
	done := int64(0)
	for range min(len(todo), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			// Ranges are taken in order. So if any range differs, the first one that does
			// has been hashed, even if a later one is found first.
			for !stop.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(todo) {
					return
				}
				w := &todo[i]
				faults[i] = mmap.Guard(func() (err error) {
					got[i], err = ir.DigestOf(ctx, h.data[w.offset:w.offset+w.length])
					return err
				})
				if faults[i] != nil || got[i] != w.digest && !h.goOn {
					stop.Store(true)
				}
				if h.progress != nil && total > 0 {
					one.Lock()
					done += w.length
					h.progress(float64(done) / float64(total))
					one.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for i := range todo {
		if faults[i] != nil {
			return nil, faults[i]
		}
		if i >= int(next.Load()) {
			delete(out, todo[i].fileRange)
			continue
		}
		out[todo[i].fileRange] = got[i]
	}
	h.remember(key, known, out, total)
	return out, nil
}

// remember saves the digests that were found, unless the file changed while it was read.
func (h *hashing) remember(key fileState, known, found map[fileRange]ir.Digest, hashed int64) {
	if h.path == "" || hashed < h.small {
		return
	}
	after, err := os.Stat(h.path)
	if err != nil || stateOf(key.path, after) != key {
		return
	}
	all := make(map[fileRange]ir.Digest, len(known)+len(found))
	for r, d := range known {
		all[r] = d
	}
	for r, d := range found {
		if d != (ir.Digest{}) {
			all[r] = d
		}
	}
	h.cache.save(key, all)
}
