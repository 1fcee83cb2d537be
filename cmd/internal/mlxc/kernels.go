package mlxc

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/msl"
)

// kernelFlags give declarations of kernels that are not of this module's library.
type kernelFlags struct {
	Kernels []string `placeholder:"FILE" help:"Metal source with declarations of kernels that the graph runs (docs/kernels.md); the proof believes them, and says so. Repeatable."`
}

// maxSource bounds the size in bytes of a source.
const maxSource = 16 << 20

// register adds the sources to the library and returns the names that they have there.
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
