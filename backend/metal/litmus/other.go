//go:build !((darwin || linux) && (amd64 || arm64))

package litmus

import (
	"context"
	"errors"
)

// Run returns an error: there is no Metal here.
func Run(context.Context, Options) ([]Result, error) {
	return nil, errors.New("Metal is on Macs alone")
}

// Names returns no names: there are no tests on this system.
func Names() []string { return nil }
