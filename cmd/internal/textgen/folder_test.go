package textgen_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/safetensors"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/python"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
)

// TestFolderOfTheModel: the demonstration model as a folder of MLX's has the tokens and the logits of the GGUF file, by llama.cpp,
// and as many dispatches; its tokenizer cuts texts as the file's does.
func TestFolderOfTheModel(t *testing.T) {
	sample.Seldom(t)
	file := demonstration(t)
	interpreter, err := python.Find()
	require.NoError(t, err)
	path := os.Getenv("MODEL")
	if path == "" {
		path = "../../../testdata/model/SmolLM2-135M-Instruct.Q4_1.gguf"
	}
	dir := filepath.Join(t.TempDir(), "model")
	out, err := exec.CommandContext(t.Context(), interpreter, "../../../testdata/gen/smollm2_folder.py", path, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	folder, err := safetensors.Load(dir)
	require.NoError(t, err)
	defer folder.Close()

	var modules []*ir.Module
	var dispatches [][]int
	for _, m := range []frontend.Model{file, folder} {
		module, err := m.Record(context.Background(), frontend.Options{Context: 256, Type: ir.F32})
		require.NoError(t, err)
		var counts []int
		for i, g := range module.Graphs {
			module.Graphs[i], err = optimize.New("").Optimize(context.Background(), g) // and proved
			require.NoError(t, err)
			counts = append(counts, module.Graphs[i].Stats().Dispatches)
		}
		modules, dispatches = append(modules, module), append(dispatches, counts)
	}
	require.Equal(t, dispatches[0], dispatches[1])
	require.Equal(t, 153, dispatches[1][0])

	whole, parts := openModel(t, modules[0]), openModel(t, modules[1])
	require.Equal(t, whole.Tokenizer.ChatTemplate(), parts.Tokenizer.ChatTemplate())
	require.Equal(t, whole.Tokenizer.EndOfGeneration(), parts.Tokenizer.EndOfGeneration())
	for _, r := range oracle(t) {
		require.Equal(t, r.PromptIDs, parts.Tokenizer.Encode(r.Prompt, r.ParseSpecial), r.Name)
	}
	for _, r := range sample.Turns(t, t.Name(), oracle(t)) {
		t.Run(r.Name, func(t *testing.T) {
			sameAs(t, parts, r)
		})
	}
}
