package mlxg

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/ir"
)

// replaced is the file that a new file will replace. If the module refers to contents of
// the old file, the new one must contain them, or they would be lost. A nil *replaced means
// that no file is replaced.
type replaced struct {
	path, dir string
	old       os.FileInfo     // nil: there is no file at path yet
	names     map[string]bool // whether a path of an external file names the old file
}

// holds reports whether blob b, whose path in the new file is name, lies in the file that is
// replaced, so that the new file must embed it.
func (r *replaced) holds(name string, b *ir.Blob) (bool, error) {
	if r == nil {
		return false, nil
	}
	own, known := r.names[name]
	if !known {
		own = r.is(filepath.Join(r.dir, filepath.FromSlash(name)))
		if r.names == nil {
			r.names = map[string]bool{}
		}
		r.names[name] = own
	}
	if !own {
		return false, nil
	}
	if r.old == nil || !r.container() {
		return false, fmt.Errorf("the graph refers to %q, which is the file to be written: its contents would be lost (write to another file)", name)
	}
	if !b.Loaded() {
		return false, fmt.Errorf("the graph refers to %q, which is the file to be written, and was opened without its contents (open it with them, or write to another file)", name)
	}
	return true, nil
}

// is reports whether path names the file that is replaced, also by way of links.
func (r *replaced) is(path string) bool {
	if r.old == nil {
		return filepath.Clean(path) == filepath.Clean(r.path)
	}
	st, err := os.Stat(path)
	return err == nil && os.SameFile(st, r.old)
}

// container reports whether the old file is a container. Any other file that a graph refers
// to, such as a model, must not be replaced by that graph.
func (r *replaced) container() bool {
	f, err := os.Open(r.path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	return err == nil && IsContainer(head)
}
