//go:build unix && !linux

package softmetal

import "os"

// sharedFile returns a temporary file without a name.
func sharedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "mlxc-softmetal-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// punch does nothing: memory is freed when the file is closed.
func punch(*os.File, int64, int64) {}
