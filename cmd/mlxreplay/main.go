// Command mlxreplay: see the package internal/cli/mlxreplay.
package main

import (
	"os"

	"github.com/mlxc/mlxc/internal/cli/mlxreplay"
)

func main() { os.Exit(mlxreplay.Main(os.Args[1:])) }
