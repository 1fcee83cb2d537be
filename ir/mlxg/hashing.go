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

// hashing compares ranges of one file with the digests that a module records of
// them. What it found of a state of the file is remembered, so that a large model is
// read once and not by every command.
type hashing struct {
	path     string      // "" for contents that are in no file
	info     os.FileInfo // of the file that data is the mapping of
	data     []byte
	verify   bool // compute every digest, remembered or not
	cache    digests
	progress func(done float64)
	// goOn says that ranges behind one that differs are hashed too.
	goOn bool
	// small is how many bytes are hashed again rather than remembered.
	small int64
}

// rangeOf is a range and the digest that it is recorded with.
type rangeOf struct {
	fileRange
	digest ir.Digest
}

// maxRehash bounds how often a file is hashed over: ranges may overlap, and a small
// file of a hundred thousand ranges that overlap would take hours. Ranges in recorded files
// hardly ever overlap.
const maxRehash = 8

// digests returns the digests of ranges, those of wanted in order. It ends at the
// first that differs from what is recorded, unless h.goOn; ranges behind it may be
// missing from the result. A cache with wrong entries never makes a right file count as wrong.
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
		// INVARIANT: ranges lie in the file, so that these sums stay in 64 bits.
		if total += w.length; total > maxRehash*int64(len(h.data)) {
			return nil, fmt.Errorf("contents refer to the same bytes of a file of %d bytes over and over: together their %d ranges have more than %d times as many", len(h.data), len(wanted), maxRehash)
		}
	}
	if len(todo) == 0 {
		return out, nil
	}
	got := make([]ir.Digest, len(todo))
	faults := make([]error, len(todo))
	var done, next atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	var one sync.Mutex // of the calls of progress
	for range min(len(todo), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			// Ranges are taken in their order, so that the first one that differs is
			// always hashed, whichever is found first.
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
				if sum := done.Add(w.length); h.progress != nil && total > 0 {
					one.Lock()
					h.progress(float64(sum) / float64(total))
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

// remember keeps what was found, unless the file changed while it was read.
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
