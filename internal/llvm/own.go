package llvm

import "embed"

// Own are the files of this package, on which depend the texts that are changed with it.
//
//go:embed *.go
var Own embed.FS
