//go:build !linux || static || !(amd64 || arm64)

package main

import (
	"errors"
	"runtime"

	"github.com/mlxc/mlxc/backend"
)

var cuda = backend.Driver{Name: "cuda", What: "a GPU of NVIDIA's", GPU: true, Missing: noCUDA(), Instead: "use --device cpu"}

func noCUDA() error {
	if runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
		return errors.New("cuda: this program was built without it, to need nothing of the system at its start (tag static); go install github.com/mlxc/mlxc/cmd/mlxreplay@latest builds one that has it")
	}
	return errors.New("cuda: NVIDIA's GPUs are driven on Linux alone (amd64, arm64)")
}
