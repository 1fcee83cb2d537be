package python_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/python"
)

func TestFind(t *testing.T) {
	found, err := python.Find("json")
	require.NoError(t, err)
	require.NoError(t, exec.Command(found, "-c", "pass").Run())

	t.Setenv("PYTHON", found)
	named, err := python.Find("json")
	require.NoError(t, err)
	assert.Equal(t, found, named)

	_, err = python.Find("no_such_module")
	require.ErrorContains(t, err, "no_such_module")
	assert.ErrorContains(t, err, "scripts/python.sh")

	t.Setenv("PYTHON", filepath.Join(t.TempDir(), "nothing"))
	_, err = python.Find("json")
	assert.ErrorContains(t, err, "nothing")
}
