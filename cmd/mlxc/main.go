// Command mlxc: see the package cmd/internal/mlxc.
package main

import (
	"os"
	"runtime/debug"

	"github.com/mlxc/mlxc/cmd/internal/mlxc"
)

func main() {
	// A compiler's life is short and most of what it makes lives as long: collect
	// less often, unless somebody wants it otherwise.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(mlxc.Main(os.Args[1:]))
}
