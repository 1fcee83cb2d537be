//go:build !unix

package softmetal

import (
	"context"
	"errors"

	"github.com/mlxc/mlxc/backend"
)

// Options and Device are as on other systems.
type (
	Options struct {
		Workers int
		Memory  int64
		Cache   string
		Library string
	}
	Device struct{ backend.Device }
)

// New fails: the executor needs a Unix.
func New(context.Context, Options) (*Device, error) {
	return nil, errors.New("softmetal: this system is no Unix, which the executor needs")
}

// Close does nothing.
func (*Device) Close() error { return nil }
