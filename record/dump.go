package record

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// DumpVariable is the environment variable that names a directory or a .mlxg file. If it is
// set, encoders that execute write the first recording that they finish there, so that one
// gets a graph from an engine that does not write graphs itself. In a directory, the file
// is named after the encoder. A process writes each file once, from the encoder that was
// made first, and never a file from which it has mapped weights.
const DumpVariable = "MLXC_CAPTURE"

var (
	dumpMu sync.Mutex
	dumped = map[string]bool{} // paths that some encoder will write or has written
	// written holds the files that were written, by lower-case names: on file systems that
	// ignore case, two encoders may name one file in two ways.
	written = map[string][]os.FileInfo{}
)

// claimDump returns the file to which e's first recording is to be written, or "".
func claimDump(e *Encoder) string {
	path := os.Getenv(DumpVariable)
	if path == "" {
		return ""
	}
	if !strings.HasSuffix(path, ".mlxg") {
		path = filepath.Join(path, fileName(e.g.Name)+".mlxg")
	}
	dumpMu.Lock()
	defer dumpMu.Unlock()
	if dumped[path] {
		return ""
	}
	dumped[path] = true
	return path
}

// fileName replaces the characters of s that are not safe in the name of a file.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}

func dump(path string, g *ir.Graph) error {
	dumpMu.Lock()
	defer dumpMu.Unlock()
	path = atomicfile.Resolve(path)
	key := strings.ToLower(filepath.Base(path))
	if st, err := os.Stat(path); err == nil && slices.ContainsFunc(written[key], func(w os.FileInfo) bool { return os.SameFile(st, w) }) {
		return nil
	}
	if mmap.InUse(path) {
		return fmt.Errorf("%s is in use: this process reads its contents (name another file)", path)
	}
	if err := write(path, g); err != nil {
		return err
	}
	if st, err := os.Stat(path); err == nil {
		written[key] = append(written[key], st)
	}
	return nil
}

func write(path string, g *ir.Graph) error {
	return mlxg.WriteFile(context.Background(), path, &ir.Module{Graphs: []*ir.Graph{g}}, mlxg.WriteOptions{})
}
