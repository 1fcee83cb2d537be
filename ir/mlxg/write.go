package mlxg

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// WriteOptions say how a module is written. The zero value is the usual way.
type WriteOptions struct {
	// EmbedExternal copies external blobs into the file; they must be loaded.
	EmbedExternal bool
	// Base is the directory to which the paths of external blobs are relative in the
	// module, usually that of the file that the module was read from. [WriteFile] makes
	// them relative to the new file's directory. "" leaves the paths as they are.
	Base string
	// Progress, if not nil, is called with the share, from 0 to 1, of the embedded contents that are written.
	Progress func(done float64)
}

// WriteFile writes m to the file at path. It writes a temporary file in the same directory
// and, once the bytes are on disk, renames it to path. After an error or a crash, path holds
// what it held before; a crash may leave a file named .NAME.….tmp. Blobs are streamed from
// where they lie, and a blob whose bytes do not have its digest is an error. Equal modules
// give equal files.
//
// If m refers to contents of the old file at path, they are embedded in the new one. This
// requires that the old file is a container and that these contents are loaded; otherwise it
// is an error, and the old file stays.
func WriteFile(ctx context.Context, path string, m *ir.Module, o WriteOptions) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("mlxg: cannot write %s: %w", path, err)
		}
	}()
	defer mmap.Catch(&err)() // blobs lie in mapped files
	dir, st := filepath.Dir(path), os.FileInfo(nil)
	if st, err = os.Stat(path); err == nil && !st.Mode().IsRegular() {
		dir = "." // a device or a pipe, to whose directory paths should not be relative
	}
	w, err := newWriter(ctx, m, o, dir, &replaced{path: path, dir: dir, old: st})
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, func(f *os.File) error {
		if st, err := f.Stat(); err == nil && !st.Mode().IsRegular() {
			return w.stream(ctx, f)
		}
		if _, err := f.Write(make([]byte, w.headerSize())); err != nil {
			return err
		}
		sections, err := w.body(ctx, f, true)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(header(sections), 0)
		return err
	})
}

// Write writes m to w as [WriteFile] does. Every blob is read twice, because the header
// comes first and holds checksums of everything. o.Base is ignored, because w has no
// directory.
func Write(ctx context.Context, w io.Writer, m *ir.Module, o WriteOptions) error {
	o.Base = ""
	err := mmap.Guard(func() error {
		wr, err := newWriter(ctx, m, o, "", nil)
		if err != nil {
			return err
		}
		return wr.stream(ctx, w)
	})
	if err != nil {
		return fmt.Errorf("mlxg: cannot write: %w", err)
	}
	return nil
}

// stream writes to a file that cannot seek, such as a pipe.
func (w *writer) stream(ctx context.Context, to io.Writer) error {
	sections, err := w.body(ctx, io.Discard, true)
	if err != nil {
		return err
	}
	if _, err := to.Write(header(sections)); err != nil {
		return err
	}
	again, err := w.body(ctx, to, false)
	if err == nil && !slices.Equal(sections, again) {
		err = fmt.Errorf("the module changed while it was written")
	}
	return err
}

// writer writes one module, any number of times.
type writer struct {
	m        *ir.Module
	plan     *plan
	progress func(done float64)
}

func newWriter(ctx context.Context, m *ir.Module, o WriteOptions, dir string, place *replaced) (*writer, error) {
	if err := m.CheckContext(ctx); err != nil {
		return nil, err
	}
	rebase, err := Rebase(dir, o.Base)
	if err != nil {
		return nil, err
	}
	p, err := planBlobs(m, o.EmbedExternal, rebase, place)
	if err != nil {
		return nil, err
	}
	return &writer{m, p, o.Progress}, nil
}

func (w *writer) embeds() bool { return len(w.plan.embedded) > 0 }

func (w *writer) headerSize() int {
	if w.embeds() {
		return headerSize(4)
	}
	return headerSize(3)
}

// body writes everything that follows the header, and returns the section table. If
// checkDigests is set, it compares the bytes of blobs with their digests.
func (w *writer) body(ctx context.Context, to io.Writer, checkDigests bool) ([]section, error) {
	out := &measured{to: interrupt.Writer(ctx, to), n: int64(w.headerSize())}
	buf := bufio.NewWriterSize(out, 64<<10)
	var sections []section
	add := func(k sectionKind, write func() error) error {
		start := out.n
		out.crc = 0
		if err := write(); err != nil {
			return err
		}
		if err := buf.Flush(); err != nil {
			return err
		}
		sections = append(sections, section{kind: k, offset: uint64(start), length: uint64(out.n - start), crc: out.crc})
		return nil
	}
	e := newEncoder(w.plan)
	e.mp.ResetWriter(buf)
	encode := func(f func()) func() error {
		return func() error {
			f()
			return e.err
		}
	}
	if err := add(metaSection, encode(func() { e.meta(w.m) })); err != nil {
		return nil, err
	}
	if err := add(stringsSection, encode(e.strings)); err != nil {
		return nil, err
	}
	if err := add(blobSection, encode(e.blobs)); err != nil {
		return nil, err
	}
	if !w.embeds() {
		return sections, nil
	}
	if err := out.zeros(alignUp(out.n, w.plan.align) - out.n); err != nil {
		return nil, err
	}
	err := add(weightSection, func() error { return w.weights(ctx, out, checkDigests) })
	return sections, err
}

// weights streams the embedded blobs.
func (w *writer) weights(ctx context.Context, out *measured, check bool) error {
	start := out.n
	total := int64(1)
	for _, e := range w.plan.entries {
		if e.path == "" {
			total = max(total, e.offset+e.length)
		}
	}
	for i := range w.plan.entries {
		e := &w.plan.entries[i]
		if e.path != "" {
			continue
		}
		if err := out.zeros(start + e.offset - out.n); err != nil {
			return err
		}
		sum := sha256.New()
		// Pieces are small enough to stay in the CPU's cache from the digest to the write.
		for piece, err := range e.blob.Pieces() {
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return err
			}
			if check {
				sum.Write(piece)
			}
			if _, err := out.Write(piece); err != nil {
				return mmap.Explain(err, piece)
			}
			if w.progress != nil && check {
				w.progress(float64(out.n-start) / float64(total))
			}
		}
		if got := ir.Digest(sum.Sum(nil)); check && got != e.digest {
			return fmt.Errorf("blob %d (%d bytes): bytes differ from the recorded ones: sha256 of its bytes is %s, the module says %s (get the file again)", i, e.length, got, e.digest)
		}
	}
	return nil
}

// measured is a writer that counts the bytes that go through it and computes their checksum.
type measured struct {
	to  io.Writer
	n   int64  // bytes from the beginning of the file
	crc uint32 // CRC-32C since it was last set to 0
}

func (m *measured) Write(p []byte) (int, error) {
	n, err := m.to.Write(p)
	m.n += int64(n)
	m.crc = crc32.Update(m.crc, castagnoli, p[:n])
	return n, err
}

var zeroPage [4096]byte

func (m *measured) zeros(n int64) error {
	for n > 0 {
		k, err := m.Write(zeroPage[:min(n, int64(len(zeroPage)))])
		if err != nil {
			return err
		}
		n -= int64(k)
	}
	return nil
}
