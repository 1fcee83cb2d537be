// Command mlxc: see the package internal/cli/mlxc.
package main

import (
	"os"

	"github.com/mlxc/mlxc/internal/cli/mlxc"
)

func main() { os.Exit(mlxc.Main(os.Args[1:])) }
