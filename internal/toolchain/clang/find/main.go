// Command find prints the clang that package clang finds, and its version.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

func main() {
	c, err := clang.Find(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s: clang %d\n", c, c.Version)
}
