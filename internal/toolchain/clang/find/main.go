// Command find prints the path and version of the clang that package clang finds; with -oldest, of the oldest one
// that tests use.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

func main() {
	oldest := flag.Bool("oldest", false, "find the oldest one that will do")
	flag.Parse()
	find := clang.Find
	if *oldest {
		find = clang.Oldest
	}
	c, err := find(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s: clang %d\n", c, c.Version)
}
