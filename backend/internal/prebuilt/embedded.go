package prebuilt

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed kernels.bin
var embedded []byte

// same says of which archive the compiler as it is today makes every text, byte for byte, though another state of it
// made the archive: Same of the two. `make ptx-same` compiles all of them, compares, and writes it.
//
//go:embed same.txt
var same string

// Same is what same.txt says of an archive and of a state of the compiler.
func Same(archive []byte, maker string) string {
	return fmt.Sprintf("archive %x\nmaker %s\n", sha256.Sum256(archive), maker)
}

// Own returns the archive that is part of the program.
var Own = sync.OnceValues(func() (*Archive, error) {
	a, err := Read(embedded)
	if err == nil && strings.HasSuffix(same, Same(embedded, Maker())) {
		a.Maker = Maker()
	}
	return a, err
})

// Size is how many bytes the archive has that is part of the program.
func Size() int { return len(embedded) }
