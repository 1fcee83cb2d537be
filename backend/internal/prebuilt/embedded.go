package prebuilt

import (
	_ "embed"
	"sync"
)

//go:embed kernels.bin
var embedded []byte

// Own returns the archive that is part of the program.
var Own = sync.OnceValues(func() (*Archive, error) { return Read(embedded) })

// Size is how many bytes the archive has that is part of the program.
func Size() int { return len(embedded) }
