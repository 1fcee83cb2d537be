package gpu

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cost"
)

// TestHere: what is kept of a GPU is found again for the same GPU and driver, and for no other.
func TestHere(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("CUDA_VISIBLE_DEVICES", "0")
	proc = t.TempDir()
	t.Cleanup(func() { proc = "/proc" })
	_, ok := Here()
	assert.False(t, ok)
	write := func(path, text string) {
		path = filepath.Join(proc, "driver/nvidia", path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	// As the driver writes them.
	write("gpus/0000:19:00.0/information", "Model: \t\t NVIDIA H200\nIRQ:   \t\t 0\nGPU UUID: \t GPU-0\n")
	write("version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  Thu Oct  9 2025\nGCC version:  gcc version 12.2.0\n")
	m, ok := Here()
	require.True(t, ok)
	assert.Equal(t, Machine{"NVIDIA H200", "580.159.03"}, m)
	assert.Equal(t, m, Named("NVIDIA H200"))
	p, ok := m.Model()
	require.True(t, ok)
	assert.Equal(t, cost.H200, p.Name, "by its name")
	p.Bandwidth = 3e12
	require.NoError(t, m.Keep(p))
	again, ok := m.Model()
	require.True(t, ok)
	assert.InEpsilon(t, p.Bandwidth, again.Bandwidth, 1e-9, "as it was measured")
	t.Setenv("CUDA_VISIBLE_DEVICES", "-1")
	_, ok = Here()
	assert.False(t, ok, "programs are shown none")
	_, ok = Machine{m.GPU, "580.160"}.Profile()
	assert.False(t, ok, "another driver")
	_, ok = Machine{"NVIDIA A100", m.Driver}.Model()
	assert.False(t, ok, "a GPU that nobody knows")
}
