package mlxg

import "github.com/mlxc/mlxc/ir"

// maxOffset bounds offsets and lengths, so that sums of them cannot overflow 64 bits.
const maxOffset = 1 << 47

// blobPlace says where a blob lies in the container, as offsets in bytes from its
// beginning: its entry in the blob table and, if it is embedded, its contents.
type blobPlace struct{ entry, bytes int64 }

// decodeBlobs reads section BLOB. Embedded blobs get their bytes in the weight section;
// external ones have no bytes yet.
func (im *image) decodeBlobs() ([]*ir.Blob, []blobPlace, error) {
	c := im.cursor(blobSection)
	var weights []byte
	ws, embedding := im.sections[weightSection]
	if embedding {
		weights = im.bytes(ws)
		if ws.offset%weightAlign != 0 {
			c.fail(0, "section %s begins at byte %d of the file, which is no multiple of %d", weightSection, ws.offset, weightAlign)
		}
	}
	var blobs []*ir.Blob
	var places []blobPlace
	end := int64(0) // where the previous embedded blob ends
	n := c.list("the blob table", 38)
	for i := 0; i < n && c.err == nil; i++ {
		c.enter(0, "blob", i)
		entry := c.pos
		c.tuple("the blob", 4)
		file := string(c.utf8("path"))
		at := c.pos
		off := c.int("offset", 0, maxOffset)
		length := c.int("length", 0, maxOffset)
		digest := c.digest("digest")
		if c.err != nil {
			break
		}
		var b *ir.Blob
		switch {
		case file != "":
			if why := ir.BadPath(file); why != "" {
				c.fail(entry, "path %q %s", file, why)
			}
			b = ir.ExternalBlob(file, off, length, digest)
		case !embedding:
			c.fail(entry, "is embedded, but the file has no section %s", weightSection)
		case off%blobAlign != 0:
			c.fail(at, "offset %d is no multiple of %d", off, blobAlign)
		case off < end:
			c.fail(at, "begins at byte %d of section %s, the blob before it ends at byte %d", off, weightSection, end)
		case off+length > int64(len(weights)):
			c.fail(at, "[%d:%d] ends past section %s (%d bytes): the file is truncated or damaged", off, off+length, weightSection, len(weights))
		default:
			end = off + length
			b = ir.MappedBlob(weights[off:end:end], digest)
		}
		blobs, places = extend(blobs, n), extend(places, n)
		blobs[i] = b
		places[i] = blobPlace{entry: c.base + int64(entry), bytes: int64(ws.offset) + off}
	}
	c.leave(0)
	return blobs, places, c.end()
}
