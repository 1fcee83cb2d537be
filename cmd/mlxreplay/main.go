// Command mlxreplay: see the package cmd/internal/mlxreplay.
package main

import (
	"os"

	"github.com/mlxc/mlxc/cmd/internal/mlxreplay"
)

func main() { os.Exit(mlxreplay.Main(os.Args[1:])) }
