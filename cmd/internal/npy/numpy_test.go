package npy

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testdata = "../../../testdata/npy"

var out = flag.String("out", "", "where TestSave leaves its files, for `npy.py --check`; default a temporary directory")

// numpyFiles returns the files that testdata/gen/npy.py wrote, with their contents.
func numpyFiles(t testing.TB) map[string]*Array {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testdata, "expected.json"))
	require.NoError(t, err)
	var expected map[string]struct {
		DType string
		Shape []int
		Data  string
	}
	require.NoError(t, json.Unmarshal(text, &expected))
	files := map[string]*Array{}
	for name, e := range expected {
		a := &Array{Shape: e.Shape}
		for d := Bool; d.valid(); d++ {
			if d.String() == e.DType {
				a.DType = d
			}
		}
		a.Data, err = hex.DecodeString(e.Data)
		require.NoError(t, err)
		require.NoError(t, a.check(), name)
		files[filepath.Join(testdata, name+".npy")] = a
	}
	found, err := filepath.Glob(filepath.Join(testdata, "*.npy"))
	require.NoError(t, err)
	require.Len(t, found, len(files))
	return files
}

func TestLoadNumPy(t *testing.T) {
	for path, want := range numpyFiles(t) {
		got, err := Load(path)
		require.NoError(t, err)
		assert.Equal(t, want, got, path)
	}
}

// A stream of unknown length, read in small pieces, gives the same, and what follows
// the array is left in it.
func TestReadNumPy(t *testing.T) {
	for path, want := range numpyFiles(t) {
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, r := range []interface{ Read([]byte) (int, error) }{
			bytes.NewReader(file), iotest.OneByteReader(bytes.NewReader(file)), iotest.DataErrReader(bytes.NewReader(file)),
		} {
			got, err := Read(r)
			require.NoError(t, err)
			assert.Equal(t, want, got, path)
		}
		twice := strings.NewReader(string(file) + string(file))
		for range 2 {
			got, err := Read(twice)
			require.NoError(t, err)
			assert.Equal(t, want, got, path)
		}
		assert.Zero(t, twice.Len())
	}
}

// Load reads what Save writes, and numpy.save would write the same bytes if the array
// has C order.
func TestSave(t *testing.T) {
	dir := *out
	if dir == "" {
		dir = t.TempDir()
	}
	require.NoError(t, os.MkdirAll(dir, 0o777))
	same := 0
	for path, a := range numpyFiles(t) {
		saved := filepath.Join(dir, filepath.Base(path))
		require.NoError(t, Save(saved, a))
		got, err := Load(saved)
		require.NoError(t, err)
		assert.Equal(t, a, got, saved)
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_le.npy") || strings.HasSuffix(name, "_v1.npy") {
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			bytes, err := os.ReadFile(saved)
			require.NoError(t, err)
			assert.Equal(t, want, bytes, name)
			same++
		}
	}
	assert.Equal(t, 12+8, same)
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
