package record

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// DumpVariable is the environment variable that names a directory or a .mlxg
// file. If it is set, the first recording that each encoder of a name executes
// is written there: a graph of an engine that was not made to write any. A file is
// written once in a process, by the encoder that was made first.
const DumpVariable = "MLXC_CAPTURE"

var (
	dumpMu sync.Mutex
	dumped = map[string]bool{} // files
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
	return mlxg.WriteFile(context.Background(), path, &ir.Module{Graphs: []*ir.Graph{g}}, mlxg.WriteOptions{})
}
