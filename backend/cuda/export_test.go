//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"

	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
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

// As has the code of package ptxmatrix that is for other GPUs, whose multiprocessors have so many bytes of shared memory.
func (o Options) As(major, minor, memory int) Options {
	o.as = ptxmatrix.GPU{Major: major, Minor: minor, Memory: memory}
	return o
}

// HasImages reports whether WithImages was called.
func (o Options) HasImages() bool { return o.image != nil }
