//go:build !linux || !(amd64 || arm64)

package main

import (
	"context"
	"errors"

	"github.com/mlxc/mlxc/backend"
)

func openCUDA(context.Context, plan, string) (backend.Device, func(), error) {
	return nil, nil, errors.New("device cuda needs Linux on amd64 or arm64")
}
