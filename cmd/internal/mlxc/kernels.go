package mlxc

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// kernelFlags name Metal sources that declare kernels in addition to the builtin library's.
type kernelFlags struct {
	Kernels []string `placeholder:"FILE" help:"Metal source that declares kernels of the graph (docs/kernels.md). The proof believes the declarations, and says so. Repeatable."`
}

// maxSource bounds the size of a source file, in bytes.
const maxSource = 16 << 20

// register adds the sources to the library and returns their names in it.
func (f *kernelFlags) register() (names []string, err error) {
	for _, path := range f.Kernels {
		text, err := readSource(path)
		if err != nil {
			return nil, fmt.Errorf("--kernels: %w", err)
		}
		name := filepath.Base(path)
		if err := msl.Register(name, text); err != nil {
			return nil, fmt.Errorf("--kernels %s: %w", path, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// used returns an error if some source declares no kernel of any graph, because its flag then has no effect.
func (f *kernelFlags) used(graphs ...*ir.Graph) error {
	for _, path := range f.Kernels {
		name := filepath.Base(path)
		found, near := false, ""
		for _, g := range graphs {
			for i := range g.Kernels {
				k := &g.Kernels[i]
				file, ok := msl.Registered(k)
				found = found || ok && file == name
				if k.Library.Kind == ir.SourceFile && filepath.Base(k.Library.Path) == name {
					near = fmt.Sprintf(": kernel @%s is of %s with the digest %.12s…, which this file has not, or its declaration of %s is missing", ir.QuoteName(k.Name), k.Library.Path, fmt.Sprint(k.Library.Digest), k.Function)
				}
			}
		}
		if !found {
			return fmt.Errorf("--kernels %s declares no kernel of the graph%s", path, near)
		}
	}
	return nil
}

func readSource(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err == nil && len(data) > maxSource {
		err = fmt.Errorf("%s: a source has at most %d bytes", path, maxSource)
	}
	return string(data), err
}
