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

// DumpVariable is the environment variable that names a directory or a .mlxg
// file. If it is set, the first recording that each encoder of a name executes
// is written there: a graph of an engine that was not made to write any. A file is
// written once in a process, by the encoder that was made first, and never one that
// the process has its weights from.
const DumpVariable = "MLXC_CAPTURE"

var (
	dumpMu sync.Mutex
	dumped = map[string]bool{} // files that are spoken for
	// written holds the files that were written, by lower-case names: on file systems that
	// ignore case, two encoders may name one file in two ways.
	written = map[string][]os.FileInfo{}
)

// claimDump returns the file that e's first recording goes to, or "".
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

// fileName makes a name safe as that of a file.
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
