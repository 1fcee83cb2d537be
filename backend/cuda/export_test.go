//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
)

// WithImages has a device load what make returns for a kernel in place of its PTX.
func (o Options) WithImages(make func(ctx context.Context, in air.Input, form nvptx.Launch) ([]byte, error)) Options {
	o.image = make
	return o
}

// WithFits has images launched with the grids and blocks of package ptxmatrix.
func (o Options) WithFits() Options {
	o.fitted = true
	return o
}

// HasImages reports whether WithImages was called.
func (o Options) HasImages() bool { return o.image != nil }
