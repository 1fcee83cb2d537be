package sources

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Add adds to a hash the names and texts of files that are part of the program, but for tests.
func Add(h io.Writer, all ...fs.FS) {
	for _, files := range all {
		err := fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(files, path)
			fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
			return err
		})
		if err != nil {
			panic(err) // INVARIANT: the files are part of the program.
		}
	}
}
