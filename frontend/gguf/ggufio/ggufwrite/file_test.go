package ggufwrite_test

import (
	"os"
	"path/filepath"
	"testing"

	parser "github.com/gpustack/gguf-parser-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio/ggufwrite"
)

// TestAnotherReaderAgrees checks that a reader that is not ours finds what was written.
// (It fails on empty strings and trims white space, so there are neither here.)
func TestAnotherReaderAgrees(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		w := ggufwrite.File{Version: version}
		w.KV("general.architecture", "llama")
		w.KV("general.alignment", uint32(64))
		w.KV("llama.block_count", uint32(2))
		w.KV("f", float32(0.5))
		w.KV("words", []string{"a", "bb", "c"})
		w.Tensor("norm.weight", ggufio.F32, []uint64{3}, make([]byte, 12))
		w.Tensor("w.weight", ggufio.Q8_0, []uint64{64, 2}, make([]byte, 4*34))
		path := filepath.Join(t.TempDir(), "m.gguf")
		require.NoError(t, w.WriteFile(path))
		f, err := parser.ParseGGUFFile(path)
		require.NoError(t, err)
		assert.EqualValues(t, version, f.Header.Version)
		require.Len(t, f.Header.MetadataKV, 5)
		assert.Equal(t, "llama", f.Header.MetadataKV[0].ValueString())
		assert.EqualValues(t, 2, f.Header.MetadataKV[2].ValueUint32())
		assert.EqualValues(t, 0.5, f.Header.MetadataKV[3].ValueFloat32())
		assert.Equal(t, []string{"a", "bb", "c"}, f.Header.MetadataKV[4].ValueArray().ValuesString())
		require.Len(t, f.TensorInfos, 2)
		assert.Equal(t, []uint64{64, 2}, f.TensorInfos[1].Dimensions)
		assert.EqualValues(t, 64, f.TensorInfos[1].Offset)
		st, err := os.Stat(path)
		require.NoError(t, err)
		assert.EqualValues(t, st.Size(), f.TensorDataStartOffset+64+4*34)
	}
}

func TestUnknownGoType(t *testing.T) {
	var w ggufwrite.File
	w.KV("k", 7) // an int has no fixed size
	_, err := w.Bytes()
	assert.EqualError(t, err, `ggufwrite: key "k": Go type int has no GGUF type`)
}
