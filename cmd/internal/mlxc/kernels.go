package mlxc

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/msl"
)

// kernelFlags name sources that declare kernels which are not in this module's library.
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
