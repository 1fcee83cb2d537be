// Command find prints the clang that package clang finds, and its version; with -oldest the
// one that tests hold against it.
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
