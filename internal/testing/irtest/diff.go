package irtest

import (
	"bytes"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mlxc/mlxc/ir"
)

// Diff returns how got differs from want, and "" when they are equal. Where a
// graph was read from ([ir.Source]) is no part of it; a nil and an empty list
// are equal. Embedded blobs must have equal bytes, not only equal digests.
func Diff(want, got *ir.Module) string {
	return cmp.Diff(want, got,
		cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(ir.Graph{}, "Source"),
		cmp.Comparer(sameBlob),
	)
}

func sameBlob(a, b *ir.Blob) bool {
	if !a.Equal(b) || a == nil || a.Path != "" {
		return a.Equal(b)
	}
	x, errX := a.Bytes()
	y, errY := b.Bytes()
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
