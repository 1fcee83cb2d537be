package mlxg

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
)

// externals gives external blobs their bytes.
type externals struct {
	im       *image
	dir      string // the directory to which paths are relative
	only     func(path string) bool
	verify   bool // compute every digest, even remembered ones
	cache    digests
	progress func(done float64)
}

// attach maps each file to which blobs refer once. It returns the mappings, even together
// with an error, so that the caller can close them.
func (x *externals) attach(ctx context.Context, blobs []*ir.Blob, places []blobPlace) ([]*mmap.Map, error) {
	var order []string
	users := map[string][]int{} // path → indices of its blobs
	for i, b := range blobs {
		if b.Path == "" || x.only != nil && !x.only(x.path(b.Path)) {
			continue
		}
		if users[b.Path] == nil {
			order = append(order, b.Path)
		}
		users[b.Path] = append(users[b.Path], i)
	}
	var maps []*mmap.Map
	for _, p := range order {
		m, err := x.file(ctx, p, blobs, places, users[p])
		if m != nil {
			maps = append(maps, m)
		}
		if err != nil {
			return maps, err
		}
	}
	return maps, nil
}

// file maps the file called name, and gives the blobs with the indices users their bytes. It
// checks that these have the right digests.
func (x *externals) file(ctx context.Context, name string, blobs []*ir.Blob, places []blobPlace, users []int) (*mmap.Map, error) {
	path := x.path(name)
	fail := func(i int, what, hint string, cause error) error {
		at := fmt.Sprintf("section %s: blob %d", blobSection, i)
		if x.im.sections == nil { // called by AttachExternal, for a text
			at = ""
		}
		return problem(x.im.name, places[i].entry, at, what, hint, cause)
	}
	const missing = "put the file there, or use a container with embedded weights"
	// This comes before opening, because opening a named pipe would wait for its writer.
	before, err := os.Stat(path)
	if err != nil {
		return nil, fail(users[0], fmt.Sprintf("external file %q cannot be read as %s", name, path), missing, err)
	}
	if !before.Mode().IsRegular() {
		return nil, fail(users[0], fmt.Sprintf("external file %q (%s) is no regular file", name, path), missing, nil)
	}
	m, err := mmap.Open(path)
	if err != nil {
		return nil, fail(users[0], fmt.Sprintf("external file %q cannot be read as %s", name, path), missing, err)
	}
	data := m.Bytes()
	again := moved{path: path, data: data}
	for _, i := range users {
		b := blobs[i]
		if b.Offset+b.Length > int64(len(data)) {
			again.find(b)
		}
		end := b.Offset + b.Length
		if end > int64(len(data)) {
			return m, fail(i, fmt.Sprintf("[%d:%d] ends past external file %q (%s), which has %d bytes", b.Offset, end, name, path, len(data)),
				"the file is truncated or another one: get it again", nil)
		}
		if err := b.Attach(data[b.Offset:end:end]); err != nil {
			return m, fail(i, fmt.Sprintf("external file %q", name), "", err)
		}
	}
	got, err := x.digests(ctx, path, m, blobs, users)
	if err != nil {
		return m, err
	}
	var late, at []int // blobs found elsewhere, and where they stand in users
	for k, i := range users {
		if b := blobs[i]; got[k] != b.Digest && again.find(b) {
			end := b.Offset + b.Length
			if err := b.Attach(data[b.Offset:end:end]); err != nil {
				return m, fail(i, fmt.Sprintf("external file %q", name), "", err)
			}
			late, at = append(late, i), append(at, k)
		}
	}
	if late != nil {
		again, err := x.digests(ctx, path, m, blobs, late)
		if err != nil {
			return m, err
		}
		for k, d := range again {
			got[at[k]] = d
		}
	}
	for k, i := range users {
		if b := blobs[i]; got[k] != b.Digest {
			return m, fail(i, fmt.Sprintf("external file %q (%s) [%d:%d]: sha256 is %s, the graph was recorded with %s", name, path, b.Offset, b.Offset+b.Length, got[k], b.Digest),
				"the file has changed since: restore it, or record the graph again", nil)
		}
	}
	return m, nil
}

// path returns the path in the file system of the file that the container calls name.
func (x *externals) path(name string) string {
	return filepath.Join(x.dir, filepath.FromSlash(name))
}

// digests returns the digest of the bytes of each of users. Digests after the first one that
// differs from the recorded one may not have been computed and are zero then.
func (x *externals) digests(ctx context.Context, path string, m *mmap.Map, blobs []*ir.Blob, users []int) ([]ir.Digest, error) {
	wanted := make([]rangeOf, len(users))
	for k, i := range users {
		b := blobs[i]
		wanted[k] = rangeOf{fileRange{b.Offset, b.Length}, b.Digest}
	}
	// If a container was rewritten, many contents may have moved, so one that differs does not
	// end the search there.
	h := hashing{path: path, info: m.Info(), data: m.Bytes(), verify: x.verify, cache: x.cache, progress: x.progress, goOn: IsContainer(m.Bytes())}
	found, err := h.digests(ctx, wanted)
	if err != nil {
		return nil, err
	}
	out := make([]ir.Digest, len(users))
	for k := range out {
		out[k] = found[wanted[k].fileRange]
	}
	return out, nil
}

// realPath returns the absolute path without symbolic links, so that all paths to a file
// share the digests that are remembered for it.
func realPath(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		path = p
	}
	if p, err := filepath.Abs(path); err == nil {
		path = p
	}
	return path
}
