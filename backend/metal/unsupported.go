//go:build !((darwin || linux) && (amd64 || arm64))

package metal

import (
	"errors"

	"github.com/mlxc/mlxc/backend"
)

var errElsewhere = errors.New("metal: Metal is on Macs alone")

// List fails: there is no Metal on this system.
func List() ([]Description, error) { return nil, errElsewhere }

// Device lets programs compile that use the package; no device can be opened here.
type Device struct {
	backend.Device
	Description
}

// Open fails: there is no Metal on this system.
func Open(Options) (*Device, error) { return nil, errElsewhere }

// Close does nothing.
func (*Device) Close() error { return nil }
