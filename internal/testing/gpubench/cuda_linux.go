//go:build linux && (amd64 || arm64)

package main

import (
	"context"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cuda"
)

func openCUDA(ctx context.Context, p plan, cache string) (backend.Device, func(), error) {
	how := map[string]cuda.Plan{"stream": cuda.Stream, "chain": cuda.Chain, "edges": cuda.Edges}[p.cuda]
	d, err := cuda.Open(ctx, cuda.Options{Cache: cache, Plan: how, Full: p.full, NoMMA: p.noMMA, NoWarpgroups: p.generic})
	if err != nil {
		return nil, nil, err
	}
	return d, func() { d.Close() }, nil
}
