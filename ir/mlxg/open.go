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

// OpenOptions say how a file is opened. The zero value is the usual way.
type OpenOptions struct {
	// Verify reads every byte: the checksum of the weight section, the SHA-256
	// of embedded blobs, and that of external ones even if it was computed
	// before.
	Verify bool
	// SkipExternal leaves external blobs without bytes and does not look for
	// their files, nor at the bytes of embedded ones: enough to print, compare or
	// rewrite a graph. Without it, contents have the digests that they are recorded
	// with, or Open says which do not.
	SkipExternal bool
	// SkipEmbedded leaves the bytes of embedded blobs unchecked. It is for programs that
	// only write them on by [WriteFile], which compares each with its digest.
	SkipEmbedded bool
	// Progress, if not nil, hears how much of what must be hashed is done, in [0, 1],
	// one call at a time, in any order.
	Progress func(done float64)
	// CacheDir is where digests are remembered; "" stands
	// for mlxc/digests in the user's cache directory.
	CacheDir string
	// Dir is the directory that paths of external files are relative to; "" stands
	// for that of the file.
	Dir string
	// Only, if not nil, says which external files are opened, by their paths in the
	// file system; blobs of the others stay without bytes.
	Only func(path string) bool
}

// dir is what the external paths of file are relative to.
func (o OpenOptions) dir(file string) string {
	if o.Dir != "" {
		return o.Dir
	}
	return filepath.Dir(file)
}

// File is an open container. It is read-only; its methods may be called from
// several goroutines, but Close only once nobody uses a blob any more.
type File struct {
	// Module's blobs lie in the mapping of this file, or of external ones.
	// Everything else is ordinary memory. [ir.Graph.Source] holds the byte
	// offsets of memories and nodes. Commands may share the lists of their bindings and
	// effects: call [ir.Graph.Own] before changing one in place.
	Module *ir.Module

	data    []byte // of the whole file
	weights []byte
	maps    []*mmap.Map
}

// Open maps the container at path and reads everything but its weights.
//
// The module passed [ir.Module.Check]. Errors name the file, the offset in
// bytes and the part; a defect of the module is an [ir.Errors], any other an
// [*ir.Error] with its cause, as fs.ErrNotExist for an external file.
func Open(ctx context.Context, path string, o OpenOptions) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, fmt.Errorf("mlxg: %w", err)
	}
	return open(ctx, path, m.Bytes(), o, &File{maps: []*mmap.Map{m}})
}

// Read is Open for a container that is in memory already, as one that came
// through a pipe: data is kept and must not change any more. name is for errors
// and, without o.Dir, for the directory of external files.
func Read(ctx context.Context, name string, data []byte, o OpenOptions) (*File, error) {
	return open(ctx, name, data, o, &File{})
}

func open(ctx context.Context, name string, data []byte, o OpenOptions, f *File) (*File, error) {
	f.data = data
	// A file that is cut while it is mapped is an error here, and does not end the process.
	if err := mmap.Guard(func() error { return f.read(ctx, name, data, o) }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Length returns how many bytes the container that begins with head has, and
// false if head is none's, or too short to tell; [HeaderSize] bytes tell.
func Length(head []byte) (int64, bool) {
	le := binary.LittleEndian
	if !IsContainer(head) || len(head) < fixedHeader {
		return 0, false
	}
	n := int(min(le.Uint32(head[12:]), maxSections))
	end := uint64(headerSize(n))
	if uint64(len(head)) < end {
		return 0, false
	}
	for i := range n {
		at := head[fixedHeader+i*entrySize:]
		off, length := le.Uint64(at[8:]), le.Uint64(at[16:])
		if off > maxOffset || length > maxOffset {
			return 0, false
		}
		end = max(end, off+length)
	}
	return int64(end), true
}

// HeaderSize is the greatest size of a header.
const HeaderSize = fixedHeader + maxSections*entrySize + 4

// Weights returns the section of embedded blobs as it is mapped, nil if the
// file has none. It begins at a multiple of 16 KiB of the file, hence of the
// page: a GPU buffer can be made of it without a copy.
func (f *File) Weights() []byte { return f.weights }

// Close ends all mappings. The blobs' bytes must not be touched after it.
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

// smallEmbedded is how many bytes of contents are hashed again by every command.
const smallEmbedded = 1 << 20

// checkEmbedded compares embedded contents with their digests, because proofs and written
// files rely on the digests from then on. Each state of the file is checked once.
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

// decode reads a container whose header was parsed. External blobs come without
// bytes.
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
				d.File = im.name // those of the module as a whole have none
			}
		}
		return nil, nil, nil, fmt.Errorf("mlxg: %w", err)
	}
	return m, blobs, places, nil
}
