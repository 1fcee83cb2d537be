package ir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Digest is a SHA-256.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Blob is immutable contents. The bytes are kept in the module's own file, or they are a range of
// another file that is named relative to the module's.
type Blob struct {
	// Path names the external file, with '/' and relative to the file that
	// refers to it; "" for contents that the module itself holds.
	Path   string
	Offset int64 // in the external file
	Length int64
	Digest Digest

	data   []byte
	loaded bool
	fill   func(dst []byte, at int64) error // makes the bytes each time that they are asked for; nil: data has them
}

// NewBlob returns an embedded blob of data. It keeps data, which must not change any more.
func NewBlob(data []byte) *Blob {
	return &Blob{Length: int64(len(data)), Digest: sha256.Sum256(data), data: data, loaded: true}
}

// MappedBlob returns an embedded blob of data, whose digest is known already, so that opening a
// file reads none of its weights. It keeps data.
func MappedBlob(data []byte, d Digest) *Blob {
	return &Blob{Length: int64(len(data)), Digest: d, data: data, loaded: true}
}

// Piece is the size in bytes of the pieces in which contents that are made are asked for: whole elements, and whole blocks of
// quantized weights, of which some have 17 bytes.
const Piece = 17 << 16

// MadeBlob returns an embedded blob whose bytes are made when they are needed, and kept by nobody but who asked for them:
// weights that are converted take no memory beside that of the device, and none before it is known that they fit. fill writes
// to dst what the contents have from byte `at` on, which is a multiple of [Piece]; dst is some pieces, or goes to the
// end. The bytes must be the same each time. Several goroutines may call it.
func MadeBlob(length int64, d Digest, fill func(dst []byte, at int64) error) *Blob {
	return &Blob{Length: length, Digest: d, loaded: true, fill: fill}
}

// ExternalBlob returns a blob that refers to a range of another file.
func ExternalBlob(path string, offset, length int64, d Digest) *Blob {
	return &Blob{Path: path, Offset: offset, Length: length, Digest: d}
}

// Attach gives an external blob its bytes. The opener of the file has mapped them, and is
// responsible for comparing them with the digest.
func (b *Blob) Attach(data []byte) error {
	if int64(len(data)) != b.Length {
		return fmt.Errorf("blob of %d bytes attached to %d bytes", b.Length, len(data))
	}
	b.data, b.loaded = data, true
	return nil
}

// Loaded reports whether the blob has its bytes, which an external blob gets from [Blob.Attach].
func (b *Blob) Loaded() bool { return b.loaded }

// Bytes returns the contents; the caller must not change them.
func (b *Blob) Bytes() ([]byte, error) {
	if !b.loaded {
		return nil, fmt.Errorf("contents of %q [%d:%d] are not loaded: open the graph together with that file", b.Path, b.Offset, b.Offset+b.Length)
	}
	if b.fill != nil {
		data := make([]byte, b.Length)
		return data, b.fill(data, 0)
	}
	return b.data, nil
}

// Made reports whether [Blob.Bytes] makes the contents anew, so that [Blob.Fill] is cheaper.
func (b *Blob) Made() bool { return b.fill != nil }

// Fill writes the contents to dst, which must have their length.
func (b *Blob) Fill(dst []byte) error {
	if int64(len(dst)) != b.Length {
		return fmt.Errorf("initial contents have %d bytes, memory has %d", b.Length, len(dst))
	}
	if b.fill != nil {
		return b.fill(dst, 0)
	}
	data, err := b.Bytes()
	copy(dst, data)
	return err
}

// Pieces returns the contents in pieces, each of which is the caller's until the next one.
func (b *Blob) Pieces() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if b.fill == nil {
			data, err := b.Bytes()
			if err != nil {
				yield(nil, err)
				return
			}
			for piece := range slices.Chunk(data, Piece) {
				if !yield(piece, nil) {
					return
				}
			}
			return
		}
		buffer := make([]byte, min(Piece, b.Length))
		for at := int64(0); at < b.Length; at += Piece {
			piece := buffer[:min(Piece, b.Length-at)]
			if err := b.fill(piece, at); !yield(piece, err) || err != nil {
				return
			}
		}
	}
}

// Sum returns the SHA-256 of the contents. If ctx is done, it returns the cause of that. read, if not nil, is told how many bytes
// have been read since it was told last.
func (b *Blob) Sum(ctx context.Context, read func(bytes int)) (Digest, error) {
	sum := sha256.New()
	for piece, err := range b.Pieces() {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return Digest{}, err
		}
		sum.Write(piece)
		if read != nil {
			read(len(piece))
		}
	}
	return Digest(sum.Sum(nil)), nil
}

// Verify recomputes the digest.
func (b *Blob) Verify() error { return b.VerifyContext(context.Background()) }

// VerifyContext is Verify that ends with the cause of ctx once that is done.
func (b *Blob) VerifyContext(ctx context.Context) error {
	got, err := b.Sum(ctx, nil)
	if err != nil {
		return err
	}
	if got != b.Digest {
		where := "embedded contents"
		if b.Path != "" {
			where = fmt.Sprintf("%q [%d:%d]", b.Path, b.Offset, b.Offset+b.Length)
		}
		return fmt.Errorf("%s: sha256 is %s, the graph was recorded with %s", where, got, b.Digest)
	}
	return nil
}

// DigestOf returns the SHA-256 of data. It fails only if ctx is done, with the cause of that.
func DigestOf(ctx context.Context, data []byte) (Digest, error) {
	return (&Blob{data: data, loaded: true}).Sum(ctx, nil)
}

// Equal reports whether a and b have the same digest and lie in the same place. It compares no
// bytes.
func (b *Blob) Equal(o *Blob) bool {
	if b == nil || o == nil {
		return b == o
	}
	return b.Path == o.Path && b.Offset == o.Offset && b.Length == o.Length && b.Digest == o.Digest
}

// BadPath says why p cannot be the path of an external file. It returns "" if it can.
func BadPath(p string) string {
	switch {
	case path.IsAbs(p):
		return "is absolute: a path is relative to the directory of the file that refers to it"
	case strings.ContainsRune(p, 0) || !utf8.ValidString(p):
		return "contains a zero byte or is no UTF-8"
	case len(p) > 4096:
		return "is longer than 4096 bytes"
	}
	return ""
}
