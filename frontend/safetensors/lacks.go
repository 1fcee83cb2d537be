package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/frontend"
)

// What a folder has in the place of the files that are read, and what makes those of it.

const weightsFile, tokenizerFile = "model.safetensors", "tokenizer.json"

// weightsOf returns an error if the folder has no model.safetensors, and no index that names other files.
func (m *Model) weightsOf() error {
	if _, err := os.Stat(filepath.Join(m.folder, weightsFile)); !errors.Is(err, fs.ErrNotExist) {
		return nil // what else is wrong, opening it says
	}
	var pickled, parts []string
	for _, name := range m.names() {
		switch ext := filepath.Ext(name); {
		case strings.HasPrefix(name, "adapter_"):
		case ext == ".bin" && strings.HasPrefix(name, "pytorch_model") || ext == ".pth" || ext == ".pt":
			pickled = append(pickled, name)
		case ext == ".safetensors":
			parts = append(parts, name)
		}
	}
	_, err := os.Stat(filepath.Join(m.folder, "adapter_config.json"))
	switch {
	case len(parts) > 0:
		return fmt.Errorf("%s is missing, and so is model.safetensors.index.json, which says what is in %s", weightsFile, frontend.Few(parts, ", "))
	case len(pickled) > 0:
		return fmt.Errorf("%s is missing; weights in Python's pickle format (%s) are not read: convert them, as save_pretrained of a model that transformers has loaded does", weightsFile, frontend.Few(pickled, ", "))
	case err == nil:
		return fmt.Errorf("%s is missing: the folder is an adapter of a model (adapter_config.json), which has to be merged with it first, as mlx_lm.fuse or merge_and_unload of the package peft does", weightsFile)
	}
	return fmt.Errorf("%s is missing, and so is model.safetensors.index.json, which would name other files", weightsFile)
}

// tokenizerOf is the error for a folder without tokenizer.json.
func (m *Model) tokenizerOf() error {
	var others []string
	for _, name := range m.names() {
		if slices.Contains([]string{"tokenizer.model", "vocab.json", "merges.txt", "vocab.txt", "spiece.model", "sentencepiece.bpe.model", "tekken.json"}, name) {
			others = append(others, name)
		}
	}
	has := ""
	if len(others) > 0 {
		has = fmt.Sprintf("; %s, which the folder has, is not read", strings.Join(others, ", "))
	}
	return fmt.Errorf("%s is missing%s: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) of transformers writes it, where that has a fast tokenizer of the model", tokenizerFile, has)
}

// names are the names of the folder's files, in alphabetical order.
func (m *Model) names() []string {
	entries, _ := os.ReadDir(m.folder) // a folder that cannot be read has none
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
