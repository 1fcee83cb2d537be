//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"

	"github.com/mlxc/mlxc/internal/air"
)

// WithImages has a device give the driver other images of kernels than PTX.
func (o Options) WithImages(make func(ctx context.Context, in air.Input, form air.Launch) ([]byte, error)) Options {
	o.image = make
	return o
}

// HasImages reports whether that was said.
func (o Options) HasImages() bool { return o.image != nil }
