// Command make writes the documentation as a web site: make FOLDER, in the root of the repository. Links that lead nowhere are
// errors.
package main

import (
	"fmt"
	"os"

	"github.com/mlxc/mlxc/internal/site"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: make FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(out string) error {
	names, err := site.Files(".")
	if err != nil {
		return err
	}
	s, err := site.Read(".", names)
	if err != nil {
		return err
	}
	if err := s.Check(); err != nil {
		return err
	}
	if err := s.Write(out); err != nil {
		return err
	}
	fmt.Printf("%d pages in %s: begin with %s/index.html\n", len(names), out, out)
	return nil
}
