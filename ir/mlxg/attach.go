package mlxg

import (
	"context"
	"errors"
	"io"
	"slices"
	"unsafe"

	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
)

// AttachExternal gives the external blobs of a module their bytes, as [Open] does for a
// container. The module was read from the given file, for example from its text form; paths
// are relative to that file's directory. The blobs are valid until the result is closed.
func AttachExternal(ctx context.Context, m *ir.Module, file string, o OpenOptions) (_ io.Closer, err error) {
	defer mmap.Catch(&err)()
	blobs := slices.DeleteFunc(m.Blobs(), func(b *ir.Blob) bool { return b.Path == "" })
	x := externals{im: &image{name: file}, dir: o.dir(file), only: o.Only, verify: o.Verify, cache: openDigests(o.CacheDir), progress: o.Progress}
	maps, err := x.attach(ctx, blobs, make([]blobPlace, len(blobs)))
	a := attachment(maps)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// attachment is a set of mappings.
type attachment []*mmap.Map

func (a attachment) Close() error {
	var errs []error
	for _, m := range a {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// Offset returns the offset in the file at which the bytes of an embedded blob begin. ok is
// false if the blob is not embedded in this file, or is empty.
func (f *File) Offset(b *ir.Blob) (offset int64, ok bool) {
	data, err := b.Bytes()
	if err != nil || len(data) == 0 || f.data == nil {
		return 0, false
	}
	file := f.data
	first := uintptr(unsafe.Pointer(unsafe.SliceData(file)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	if at < first || at-first+uintptr(len(data)) > uintptr(len(file)) {
		return 0, false
	}
	return int64(at - first), true
}
