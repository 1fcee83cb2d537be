//go:build linux

package fakemetal_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// TestMLXHost runs a program on MLX's own host code on the stand-in for Metal, and captures it: scripts/captures.sh programs builds it, and
// names the program and the files of the log and of the program's outputs.
func TestMLXHost(t *testing.T) {
	program, to := os.Getenv("MLXHOST_PROGRAM"), os.Getenv("MLXHOST_LOG")
	if program == "" || to == "" {
		t.Skip("scripts/captures.sh programs runs this")
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	start, stop := shim(t)
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	m := l.Serve(t, fakemetal.Options{})
	device := objc.SystemDefaultDevice()
	require.NotZero(t, device)
	require.Zero(t, start(to, uintptr(device)))
	host, err := purego.Dlopen(filepath.Join(root, "out", "mlxhost", "mlxhost.so"), purego.RTLD_LAZY|purego.RTLD_LOCAL)
	require.NoError(t, err)
	var run func(program, library, path string) string
	purego.RegisterLibFunc(&run, host, "mlxhost_run")
	require.Empty(t, run(program, os.Getenv("MLXHOST_LIBRARY"), to+".outputs"))
	require.Zero(t, stop())
	t.Logf("%d dispatches ran", len(m.Ran()))
	objc.Release(device)
	m.Close()
	for _, text := range l.Failures() { // MLX keeps its device, streams and caches to the end of the process
		require.True(t, strings.HasSuffix(text, " leak"), text)
	}
}

// outputs reads what a program has written.
func outputs(t *testing.T, data []byte) (names []string, values [][]byte) {
	t.Helper()
	for len(data) > 0 {
		var parts [2][]byte
		for i := range parts {
			n := binary.LittleEndian.Uint32(data)
			parts[i], data = data[4:4+n], data[4+n:]
		}
		names, values = append(names, string(parts[0])), append(values, parts[1])
	}
	return names, values
}
