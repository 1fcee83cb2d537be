package gguf

import "github.com/mlxc/mlxc/tokenizer"

// VocabularyData is the name of the module's data blob that holds the
// tokenizer ([tokenizer.Unmarshal] reads it).
const VocabularyData = "tokenizer.json"

func (m *Model) vocabulary() ([]byte, error) {
	spec, err := FromGGUF(m.File)
	if err != nil {
		return nil, err
	}
	return tokenizer.Marshal(spec)
}
