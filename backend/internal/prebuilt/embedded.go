package prebuilt

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed kernels.bin
var embedded []byte

// same says of which archive the compiler as it is today makes every text, but for names of blocks and of threadgroup
// variables, though another state of it or of a source made the archive: Same of them. `make ptx-same` compiles all of
// them, compares, and writes it.
//
//go:embed same.txt
var same string

// Same is what same.txt says of an archive, of a state of the compiler, and of functions whose source is another than
// when the archive was made, with the digest of what it is now.
func Same(archive []byte, maker string, sources map[string]Digest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "archive %x\nmaker %s\n", sha256.Sum256(archive), maker)
	for _, f := range slices.Sorted(maps.Keys(sources)) {
		fmt.Fprintf(&b, "%s %x\n", f, sources[f])
	}
	return b.String()
}

// trust has an archive know what a text says that Same made.
func (a *Archive) trust(archive []byte, text string) {
	rest, ok := strings.CutPrefix(text, Same(archive, Maker(), nil))
	if !ok {
		return
	}
	a.Maker, a.today = Maker(), map[string]string{}
	for l := range strings.Lines(rest) {
		f, digest, _ := strings.Cut(strings.TrimSpace(l), " ")
		a.today[f] = digest
	}
}

// AsToday has a.Find return texts of other states of the sources and of the compiler, for who compares them. It
// returns, by function, what today's sources are where they are others.
func (a *Archive) AsToday(wanted []Request) map[string]Digest {
	a.Maker, a.today = Maker(), map[string]string{}
	others := map[string]Digest{}
	for _, r := range wanted {
		if _, err := a.Find(r); errors.Is(err, ErrStale) {
			others[r.Function] = r.Code
			a.today[r.Function] = hex.EncodeToString(r.Code[:])
		}
	}
	return others
}

// Own returns the archive that is part of the program.
var Own = sync.OnceValues(func() (*Archive, error) {
	a, err := Read(embedded)
	if err == nil {
		a.trust(embedded, same)
	}
	return a, err
})

// Size is how many bytes the archive has that is part of the program.
func Size() int { return len(embedded) }
