//go:build !unix

package softmetal

import (
	"context"
	"errors"

	"github.com/mlxc/mlxc/backend"
)

// Device cannot be made on this system.
type Device struct{ backend.Device }

// New fails: the executor needs a Unix.
func New(context.Context, Options) (*Device, error) {
	return nil, errors.New("softmetal: this system is no Unix, which the executor needs")
}

// Close does nothing.
func (*Device) Close() error { return nil }

// Observed returns nil.
func (*Device) Observed() []Observed { return nil }

// SetOrder does nothing.
func (*Device) SetOrder(uint64) {}
