package msltree

import "embed"

// Own are the files of this package, on all of which depends what is compiled.
//
//go:embed *.go
var Own embed.FS
