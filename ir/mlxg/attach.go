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

// AttachExternal gives the external blobs of a module that was read from file
// (a text, say) their bytes, as [Open] does for a container: paths are relative
// to the file's directory. The blobs are valid until the result is closed.
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

// Offset returns where in the file the bytes of an embedded blob begin; false
// for a blob that is not embedded in this file.
func (f *File) Offset(b *ir.Blob) (int64, bool) {
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
