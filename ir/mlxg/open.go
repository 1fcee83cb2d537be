package mlxg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// OpenOptions say how a file is opened. The zero value suits most callers.
type OpenOptions struct {
	// Verify reads every byte: it checks the checksum of the weight section, the SHA-256 of
	// embedded blobs, and the SHA-256 of external blobs even if that is remembered.
	Verify bool
	// SkipExternal leaves external blobs without bytes and does not look for their files.
	// It does not check the bytes of embedded blobs either. This is enough to print, compare
	// or rewrite a graph. Without it, Open returns an error if contents do not have the
	// digest with which they were recorded.
	SkipExternal bool
	// SkipEmbedded leaves the bytes of embedded blobs unchecked. It is for programs that
	// only copy them with [WriteFile], which compares each blob with its digest.
	SkipEmbedded bool
	// Progress, if not nil, is called with the part of the hashing that is done, in [0, 1].
	// Calls do not overlap, but the values need not ascend.
	Progress func(done float64)
	// CacheDir is the directory in which digests are remembered; "" stands for mlxc/digests
	// in the user's cache directory.
	CacheDir string
	// Dir is the directory to which paths of external files are relative; "" stands for that
	// of the file.
	Dir string
	// Only, if not nil, is asked which external files to open, by their paths in the file
	// system. Blobs of the other files stay without bytes.
	Only func(path string) bool
}

// dir returns the directory to which the external paths of a file are relative.
func (o OpenOptions) dir(file string) string {
	if o.Dir != "" {
		return o.Dir
	}
	return filepath.Dir(file)
}

// File is an open container. It is read-only. Its methods may be called from several
// goroutines, but Close only when no blob is used any more.
type File struct {
	// Module's blobs lie in the mappings of this file and of external files; everything
	// else is ordinary memory. [ir.Graph.Source] has the byte offsets of memories and nodes.
	// Several commands may share a list of bindings or effects, so call [ir.Graph.Own]
	// before changing one in place.
	Module *ir.Module

	data    []byte // of the whole file
	weights []byte
	maps    []*mmap.Map
}

// Open maps the container at path, reads its graphs, and compares contents with their
// digests as o says.
//
// The module has passed [ir.Module.Check]. Errors name the file, the offset in bytes and the
// part of the file. If the module is invalid, the error is an [ir.Errors]; any other error is
// an [*ir.Error] that wraps its cause, such as fs.ErrNotExist for an external file.
func Open(ctx context.Context, path string, o OpenOptions) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, fmt.Errorf("mlxg: %w", err)
	}
	return open(ctx, path, m.Bytes(), o, &File{maps: []*mmap.Map{m}})
}

// Read is [Open] for a container that is in memory, for example because it came through a
// pipe. data must not change afterwards. name is the name in errors; if o.Dir is "", its
// directory is that of external files.
func Read(ctx context.Context, name string, data []byte, o OpenOptions) (*File, error) {
	return open(ctx, name, data, o, &File{})
}

func open(ctx context.Context, name string, data []byte, o OpenOptions, f *File) (*File, error) {
	f.data = data
	// If the file is cut while it is mapped, this returns an error, where a read without
	// the guard would end the process.
	if err := mmap.Guard(func() error { return f.read(ctx, name, data, o) }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Length returns the size in bytes of the container that begins with head. ok is false if
// head does not begin a container, or is too short; [HeaderSize] bytes are always enough.
func Length(head []byte) (n int64, ok bool) {
	le := binary.LittleEndian
	if !IsContainer(head) || len(head) < fixedHeader {
		return 0, false
	}
	sections := int(min(le.Uint32(head[12:]), maxSections))
	end := uint64(headerSize(sections))
	if uint64(len(head)) < end {
		return 0, false
	}
	for i := range sections {
		at := head[fixedHeader+i*entrySize:]
		off, length := le.Uint64(at[8:]), le.Uint64(at[16:])
		if off > maxOffset || length > maxOffset {
			return 0, false
		}
		end = max(end, off+length)
	}
	return int64(end), true
}

// HeaderSize is the max size of a header in bytes.
const HeaderSize = fixedHeader + maxSections*entrySize + 4

// Weights returns the mapped bytes of the section of embedded blobs, or nil if the file has
// none. The section begins at a multiple of 16 KiB of the file and so at the beginning of a
// page, so that a GPU buffer can use it without a copy.
func (f *File) Weights() []byte { return f.weights }

// Close ends all mappings. The bytes of blobs must not be used afterwards.
func (f *File) Close() error {
	var errs []error
	for _, m := range f.maps {
		errs = append(errs, m.Close())
	}
	f.maps, f.weights, f.data = nil, nil, nil
	return errors.Join(errs...)
}

func (f *File) read(ctx context.Context, path string, data []byte, o OpenOptions) error {
	im, err := parse(path, data)
	if err != nil {
		return err
	}
	m, blobs, places, err := im.decode(ctx, o.Verify)
	if err != nil {
		return err
	}
	if !o.SkipExternal && !o.SkipEmbedded && !o.Verify {
		if err := f.checkEmbedded(ctx, im, blobs, places, o); err != nil {
			return err
		}
	}
	if !o.SkipExternal {
		x := externals{im: im, dir: o.dir(path), only: o.Only, verify: o.Verify, cache: openDigests(o.CacheDir), progress: o.Progress}
		maps, err := x.attach(ctx, blobs, places)
		f.maps = append(f.maps, maps...)
		if err != nil {
			return err
		}
	}
	f.Module = m
	if s, ok := im.sections[weightSection]; ok {
		f.weights = im.bytes(s)
	}
	return nil
}

// smallEmbedded is the number of bytes of embedded contents below which no digest is
// remembered, because hashing them again takes no noticeable time.
const smallEmbedded = 1 << 20

// checkEmbedded compares embedded contents with their digests, because proofs and written
// files rely on the digests afterwards. The result for each state of a large file is
// remembered.
func (f *File) checkEmbedded(ctx context.Context, im *image, blobs []*ir.Blob, places []blobPlace, o OpenOptions) error {
	h := hashing{data: im.data, cache: openDigests(o.CacheDir), progress: o.Progress, small: smallEmbedded}
	if len(f.maps) > 0 {
		h.path, h.info = im.name, f.maps[0].Info()
	}
	var wanted []rangeOf
	var of []int
	for i, b := range blobs {
		if b.Path == "" {
			wanted, of = append(wanted, rangeOf{fileRange{places[i].bytes, b.Length}, b.Digest}), append(of, i)
		}
	}
	found, err := h.digests(ctx, wanted)
	if err != nil {
		return err
	}
	for k, w := range wanted {
		if got := found[w.fileRange]; got != w.digest {
			return problem(im.name, places[of[k]].bytes, fmt.Sprintf("section %s: blob %d", weightSection, of[k]), "bytes differ from the recorded ones", "get the file again",
				fmt.Errorf("embedded contents: sha256 is %s, the graph was recorded with %s", got, w.digest))
		}
	}
	return nil
}

// decode reads a container after its header was parsed. External blobs have no bytes yet.
func (im *image) decode(ctx context.Context, verify bool) (m *ir.Module, blobs []*ir.Blob, places []blobPlace, err error) {
	defer interrupt.Catch(&err)
	for _, k := range []sectionKind{metaSection, stringsSection, blobSection} {
		if err := im.verify(ctx, im.sections[k]); err != nil {
			return nil, nil, nil, err
		}
	}
	if verify {
		rest := im.unknown
		if s, ok := im.sections[weightSection]; ok {
			rest = append(rest, s)
		}
		for _, s := range rest {
			if err := im.verify(ctx, s); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	strs, err := im.decodeStrings(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	blobs, places, err = im.decodeBlobs()
	if err != nil {
		return nil, nil, nil, err
	}
	if verify {
		for i, b := range blobs {
			if b.Path != "" {
				continue
			}
			if err := b.VerifyContext(ctx); err != nil {
				return nil, nil, nil, problem(im.name, places[i].bytes, fmt.Sprintf("section %s: blob %d", weightSection, i), "bytes differ from the recorded ones", "get the file again", err)
			}
		}
	}
	m, err = im.decodeMeta(ctx, strs, blobs, places)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := m.CheckContext(ctx); err != nil {
		var defects ir.Errors
		if errors.As(err, &defects) {
			for _, d := range defects {
				d.File = im.name // defects of the whole module do not name a file yet
			}
		}
		return nil, nil, nil, fmt.Errorf("mlxg: %w", err)
	}
	return m, blobs, places, nil
}
