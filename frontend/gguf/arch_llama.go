package gguf

import "github.com/mlxc/mlxc/frontend/decoder"

// llama is that of Llama 1 to 3.3, and of the models of Mistral and others that have the same layers, with experts
// (Mixtral) or without. Llama 3.1 and later ones have a tensor with factors of rope's frequencies.
var llama = architecture{name: "llama", experts: true, ropeFactors: []string{ropeFactors}, wholeRope: true, config: func(keys, *decoder.Config) error { return nil }}
