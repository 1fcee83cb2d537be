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

// Names are those of all tests: none here.
func Names() []string { return nil }
