package mlxg

import (
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/ir"
)

// Remember remembers the digests of a module's external blobs, which its recorder has just computed, so that opening the
// container does not read a large model once more. before has, by path, what the model's files were before the recorder
// opened them: of a file that is another one now nothing is remembered, and neither of one that is not in before. file is
// the container, and cacheDir as in [OpenOptions].
func Remember(m *ir.Module, file, cacheDir string, before map[string]os.FileInfo) {
	ranges := map[string]map[fileRange]ir.Digest{} // by path
	dir := OpenOptions{}.dir(file)
	for _, b := range m.Blobs() {
		if b.Path == "" {
			continue
		}
		path := realPath(filepath.Join(dir, filepath.FromSlash(b.Path)))
		if ranges[path] == nil {
			ranges[path] = map[fileRange]ir.Digest{}
		}
		ranges[path][fileRange{b.Offset, b.Length}] = b.Digest
	}
	was := map[string]os.FileInfo{}
	for path, info := range before {
		was[realPath(path)] = info
	}
	cache := openDigests(cacheDir)
	for path, found := range ranges {
		if info := was[path]; info != nil {
			key := stateOf(path, info)
			h := hashing{path: path, cache: cache}
			h.remember(key, cache.load(key), found, 0)
		}
	}
}
