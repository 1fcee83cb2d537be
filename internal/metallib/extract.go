package metallib

import (
	"context"
	"crypto/sha256"

	"github.com/mlxc/mlxc/internal/metallib/bitcode"
)

// Bitcode returns a kernel's module in the form that LLVM's tools read, as a part of the library's bytes. It compares
// the module with its digest.
func (l *Library) Bitcode(name string) ([]byte, error) {
	k, err := l.Kernel(name)
	if err != nil {
		return nil, err
	}
	return l.extract(k)
}

func (l *Library) extract(k *Kernel) ([]byte, error) {
	at := l.sections[bitcodeSection].offset + k.offset
	data := l.data[at : at+k.Size : at+k.Size]
	if sum := sha256.Sum256(data); sum != k.Hash {
		return nil, l.errorf(at, k.Name, "its %d bytes of bitcode have the SHA-256 %x, the library says %x: the file is damaged", k.Size, sum, k.Hash)
	}
	if _, _, err := bitcode.Wrapped(data); err != nil {
		return nil, l.within(k, err)
	}
	return data, nil
}

// within turns an error about a kernel's bitcode into an error of the library.
func (l *Library) within(k *Kernel, err error) error {
	at := l.sections[bitcodeSection].offset + k.offset
	if e, ok := err.(*bitcode.Error); ok {
		return l.errorf(at+e.Offset, k.Name, "bitcode: %s", e.Reason)
	}
	return l.errorf(at, k.Name, "%v", err)
}

// Verify compares the bitcode of every kernel with its digest.
func (l *Library) Verify(ctx context.Context) error {
	for i := range l.Kernels {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := l.extract(&l.Kernels[i]); err != nil {
			return err
		}
	}
	return nil
}
