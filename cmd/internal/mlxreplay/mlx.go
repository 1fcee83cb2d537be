package mlxreplay

import (
	"fmt"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/internal/mlxlib"
)

// withMLX returns the flags with --mlx replaced by --library and the path of MLX's library.
func (f deviceFlags) withMLX(env *cli.Env) (deviceFlags, error) {
	if !f.MLX {
		return f, nil
	}
	path, version, err := mlxlib.Find(env.Context, "")
	if err != nil {
		return f, fmt.Errorf("--mlx: %w (--library FILE)", err)
	}
	fmt.Fprintf(env.Stderr, "remark: --mlx: %s\n", path)
	if version != mlxlib.Version {
		fmt.Fprintf(env.Stderr, "remark: --mlx: it is of MLX %s, and graphs are recorded for the kernels of MLX %s: their arguments may be others\n", version, mlxlib.Version)
	}
	f.Library = path
	return f, nil
}
