package mlxg

import (
	"fmt"
	"path"
	"path/filepath"
	"strconv"

	"github.com/mlxc/mlxc/ir"
)

// plan is the blob table of a file that is to be written: which blobs it has, and where the
// embedded ones lie in the weight section.
type plan struct {
	entries  []entry
	index    map[*ir.Blob]int  // into entries
	embedded map[ir.Digest]int // into entries
	external map[entry]int     // into entries
	align    int64             // of the weight section
	size     int64             // of the weight section
}

// entry is a row of the blob table.
type entry struct {
	path   string // "" if the blob is embedded
	offset int64
	length int64
	digest ir.Digest
	blob   *ir.Blob // where the bytes come from, if the blob is embedded
	align  int64    // if the blob is embedded
}

// planBlobs collects the blobs of m in the order of their first use. rebase turns the path
// of an external blob into the one that the file will have. Contents of the file that is
// replaced are embedded.
func planBlobs(m *ir.Module, embedExternal bool, rebase func(string) (string, error), place *replaced) (*plan, error) {
	p := &plan{
		index:    map[*ir.Blob]int{},
		embedded: map[ir.Digest]int{},
		external: map[entry]int{},
		align:    weightAlign,
	}
	add := func(b *ir.Blob, align int64) error {
		if b.Length < 0 || b.Length > maxOffset || b.Offset < 0 || b.Offset > maxOffset {
			return fmt.Errorf("blob [%d:%d] is outside [0:%d]", b.Offset, b.Offset+b.Length, int64(maxOffset))
		}
		if b.Path == "" || embedExternal {
			return p.embed(b, align)
		}
		name, err := rebase(b.Path)
		if err != nil {
			return err
		}
		if own, err := place.holds(name, b); err != nil {
			return err
		} else if own {
			return p.embed(b, align)
		}
		e := entry{path: name, offset: b.Offset, length: b.Length, digest: b.Digest}
		i, ok := p.external[e]
		if !ok {
			i = len(p.entries)
			p.external[e] = i
			p.entries = append(p.entries, e)
		}
		p.index[b] = i
		return nil
	}
	for _, g := range m.Graphs {
		for i := range g.Memories {
			mem := &g.Memories[i]
			if mem.Init.Blob == nil {
				continue
			}
			if err := add(mem.Init.Blob, mem.Align); err != nil {
				return nil, fmt.Errorf("graph %s: memory %%%s: %w", strconv.Quote(g.Name), ir.QuoteName(mem.Name), err)
			}
		}
	}
	for _, d := range m.Data {
		if err := add(d.Blob, 1); err != nil {
			return nil, fmt.Errorf("data %s: %w", ir.QuoteName(d.Name), err)
		}
	}
	for i := range p.entries {
		e := &p.entries[i]
		if e.path != "" {
			continue
		}
		e.offset = alignUp(p.size, e.align)
		if e.offset > maxOffset {
			return nil, fmt.Errorf("embedded blobs have more than %d bytes", int64(maxOffset))
		}
		p.size = e.offset + e.length
		p.align = max(p.align, e.align)
	}
	return p, nil
}

// embed adds a blob whose bytes the file will hold. Blobs with the same digest share an
// entry.
func (p *plan) embed(b *ir.Blob, align int64) error {
	i, ok := p.embedded[b.Digest]
	if !ok {
		if !b.Loaded() {
			_, err := b.Bytes()
			return fmt.Errorf("cannot embed: %w", err)
		}
		i = len(p.entries)
		p.embedded[b.Digest] = i
		p.entries = append(p.entries, entry{length: b.Length, digest: b.Digest, blob: b, align: blobAlign})
	}
	e := &p.entries[i]
	if e.length != b.Length {
		return fmt.Errorf("blobs of %d and of %d bytes have one digest, %s", e.length, b.Length, b.Digest)
	}
	e.align = max(e.align, align)
	p.index[b] = i
	return nil
}

func alignUp(n, align int64) int64 { return (n + align - 1) / align * align }

// Rebase returns a function that turns the path of an external file, relative to the
// directory base, into one relative to dir. If base is "", it only checks the path.
func Rebase(dir, base string) (func(path string) (string, error), error) {
	check := func(p string) (string, error) {
		if why := ir.BadPath(p); why != "" {
			return "", fmt.Errorf("path of external file %q %s", p, why)
		}
		return p, nil
	}
	if base == "" {
		return check, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	base, err = filepath.Abs(base)
	if err != nil {
		return nil, err
	}
	if dir == base {
		return check, nil
	}
	return func(p string) (string, error) {
		if _, err := check(p); err != nil {
			return "", err
		}
		rel, err := filepath.Rel(dir, filepath.Join(base, filepath.FromSlash(p)))
		if err != nil {
			return "", fmt.Errorf("external file %q: %w (embed it)", p, err)
		}
		return check(path.Clean(filepath.ToSlash(rel)))
	}, nil
}
