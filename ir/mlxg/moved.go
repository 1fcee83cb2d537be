package mlxg

import (
	"context"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// moved finds contents by their digest in a container that was rewritten after a text form
// referred to it, because they may have another offset now. So a text that was
// disassembled from a container, edited and assembled over that container can be edited and
// assembled again.
type moved struct {
	path   string
	data   []byte // of the external file
	read   bool
	places map[ir.Digest]fileRange
}

// find sets the offset of b to where the container says that the contents with its digest
// are, and reports whether there are any. The caller must compare the bytes with the digest,
// because the container's table may be wrong.
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

// embeddedIn returns the ranges of a container's embedded contents by their digests, or nil
// if the file is not a container.
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

// blobTable reads the blob table of a container without the rest of it.
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

// References returns the paths of external files to which the container with the given
// bytes refers, as they stand in it. If data is not a container, it returns nil.
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
