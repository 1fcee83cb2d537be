package mlxg

import (
	"context"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// moved finds contents in a container that was written anew since a text referred
// to it: they have their digest, but may lie elsewhere now. So a text that was
// disassembled, edited and assembled onto the container can be edited and
// assembled again.
type moved struct {
	path   string
	data   []byte // of the external file
	read   bool
	places map[ir.Digest]fileRange
}

// find gives b the place where the container has its contents now, if it is a
// container and has them. What it says is not believed: whoever asks compares the
// digest of the bytes.
func (m *moved) find(b *ir.Blob) bool {
	if !m.read {
		m.read = true
		m.places = embeddedIn(m.path, m.data)
	}
	at, ok := m.places[b.Digest]
	if !ok || at.length != b.Length || at.offset == b.Offset {
		return false
	}
	b.Offset = at.offset
	return true
}

// IsContainer reports whether a file that begins with head is a container.
func IsContainer(head []byte) bool {
	return len(head) >= len(magic) && string(head[:len(magic)]) == magic
}

// embeddedIn returns where a container has which contents, nil for another file.
func embeddedIn(path string, data []byte) map[ir.Digest]fileRange {
	blobs, places, err := blobTable(path, data)
	if err != nil {
		return nil
	}
	out := make(map[ir.Digest]fileRange, len(blobs))
	for i, b := range blobs {
		if b.Path == "" {
			out[b.Digest] = fileRange{places[i].bytes, b.Length}
		}
	}
	return out
}

func blobTable(path string, data []byte) ([]*ir.Blob, []blobPlace, error) {
	im, err := parse(path, data)
	if err != nil {
		return nil, nil, err
	}
	if err := im.verify(context.Background(), im.sections[blobSection]); err != nil {
		return nil, nil, err
	}
	return im.decodeBlobs()
}

// References returns the external files that the container with the given bytes
// refers to, as it names them, and nothing for what is no container.
func References(path string, data []byte) []string {
	blobs, _, err := blobTable(path, data)
	if err != nil {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for _, b := range blobs {
		if b.Path != "" && !seen[b.Path] {
			seen[b.Path] = true
			out = append(out, strings.Clone(b.Path))
		}
	}
	return out
}
