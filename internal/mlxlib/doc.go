// Package mlxlib finds the compiled kernels of MLX, mlx.metallib, in a Python environment, without
// importing MLX: its wheels (mlx, and mlx-metal, which newer ones of it bring along) have it at
// mlx/lib/mlx.metallib.
//
//	path, version, err := mlxlib.Find(ctx, "")
package mlxlib
