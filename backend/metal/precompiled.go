//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"crypto/sha256"
	"fmt"
	"io/fs"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// ours returns where a kernel of our own library comes from: Options.Precompiled if that has it, else text,
// the source that id names.
func (l *libraries) ours(function string, id ir.Library, text func() (string, error)) home {
	path := l.device.options.Precompiled
	if path == "" {
		return l.in(function, id, text)
	}
	l.precompiled.opened.Do(func() { l.precompiled.file = l.openPrecompiled(path) })
	if f := l.precompiled.file; f != nil {
		if f.functions[function] {
			return home{library: f.library, function: function}
		}
		l.precompiled.lacks.Do(func() {
			l.device.warn("%s lacks the kernel %s: what it lacks is compiled from its source", path, function)
		})
	}
	return l.in(function, id, text)
}

// stamp returns the name of an extra function in precompiled libraries of our kernels: a digest of the
// sources that they were made of.
func stamp() string {
	h := sha256.New()
	own := msl.Own()
	files, err := fs.ReadDir(own, ".")
	for _, f := range files {
		var text []byte
		if text, err = fs.ReadFile(own, f.Name()); err != nil {
			break
		}
		h.Write(text)
	}
	if err != nil {
		panic(err) // INVARIANT: the files are part of the program.
	}
	h.Write([]byte(plan.Moves))
	return fmt.Sprintf("mlxc_sources_%x", h.Sum(nil)[:8])
}

// openPrecompiled opens the precompiled library at path; nil, after a warning, if it cannot be used.
func (l *libraries) openPrecompiled(path string) *file {
	f, err := l.file(ir.Library{Kind: ir.Metallib, Path: path})
	if err == nil && !f.functions[stamp()] {
		err = fmt.Errorf("it was not made of the kernels of this version, by scripts/metallib.sh: it lacks the function %s", stamp())
	}
	if err != nil {
		l.device.warn("the precompiled kernels of %s are not used, but compiled from their source: %v", path, err)
		return nil
	}
	return f
}
