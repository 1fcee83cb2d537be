package gguf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The keys that a file is not refused for, and told to be without effect, are those that llama.cpp does not read of its architecture
// either; and it reads all those that count (testdata/gen/gguf_keys.py).
func TestKeysThatCount(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "gguf_keys.json"))
	require.NoError(t, err)
	var reads map[string][]string
	require.NoError(t, json.Unmarshal(data, &reads))
	require.Len(t, reads, len(architectures))
	// Converters write two that say nothing new, and one is read only where another is missing. A window of phi3, which llama.cpp
	// does not apply, has a pattern.
	ours := []string{"vocab_size", "tensor_data_layout", "rope.scale_linear"}
	for _, a := range architectures {
		counts := slices.Concat(known, elsewhere, a.keys, a.others)
		for _, key := range reads[a.name] {
			require.Contains(t, counts, key, "%s: llama.cpp reads it", a.name)
		}
		for _, key := range counts {
			if !slices.Contains(ours, key) && !(a == &phi3 && key == "attention.sliding_window_pattern") {
				require.Contains(t, reads[a.name], key, "%s: llama.cpp does not read it", a.name)
			}
		}
	}
}
