package mlxg

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/mlxc/mlxc/internal/interrupt"
)

// Version is the version of the format that this package reads and writes.
const Version = 3

// magic begins every file. As PNG's does, it shows damage by transfers in text mode: it has
// a byte above 127, a CR LF, the end-of-file character of DOS, and an LF alone.
const magic = "\x89MXG\r\n\x1a\n"

// sectionKind is the four-character code of a section.
type sectionKind [4]byte

// The sections.
var (
	metaSection    = sectionKind{'M', 'E', 'T', 'A'} // graphs
	stringsSection = sectionKind{'S', 'T', 'R', 'S'} // strings of META
	blobSection    = sectionKind{'B', 'L', 'O', 'B'} // blob table
	weightSection  = sectionKind{'W', 'G', 'H', 'T'} // bytes of embedded blobs
)

func (k sectionKind) String() string {
	for _, c := range k {
		if c <= ' ' || c > '~' {
			return strconv.Quote(string(k[:]))
		}
	}
	return string(k[:])
}

// optional is the flag of a section that a reader may ignore if it does not know its kind.
// No other flag is defined.
const optional = 1

// Layout of the header, in bytes.
const (
	fixedHeader = 16 // magic, version, section count
	entrySize   = 28 // kind, flags, offset, length, crc
	maxSections = 64
	// maxGap bounds the zeros before a section. It is the max alignment of a memory.
	maxGap      = 1 << 20
	weightAlign = 16 << 10 // alignment of the weight section: the page size of Apple's hosts
	blobAlign   = 256      // min alignment of a blob in the weight section
)

// section is one entry of the section table.
type section struct {
	kind   sectionKind
	flags  uint32
	offset uint64 // from the beginning of the file
	length uint64
	crc    uint32 // CRC-32C of the section's bytes
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func headerSize(sections int) int { return fixedHeader + sections*entrySize + 4 }

// header encodes the header of a file of the given sections.
func header(sections []section) []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, headerSize(len(sections))), magic...)
	b = le.AppendUint32(b, Version)
	b = le.AppendUint32(b, uint32(len(sections)))
	for _, s := range sections {
		b = append(b, s.kind[:]...)
		b = le.AppendUint32(b, s.flags)
		b = le.AppendUint64(b, s.offset)
		b = le.AppendUint64(b, s.length)
		b = le.AppendUint32(b, s.crc)
	}
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// image is the bytes of a file together with its section table.
type image struct {
	name     string // of the file, for errors
	data     []byte
	sections map[sectionKind]section
	unknown  []section // optional sections of unknown kinds
}

// parse reads the header of data and checks where the sections lie. It does not read the
// sections, only the zeros between them.
func parse(name string, data []byte) (*image, error) {
	im := &image{name: name, data: data, sections: make(map[sectionKind]section, 4)}
	fail := func(offset int, at, what, hint string) (*image, error) {
		return nil, problem(name, int64(offset), at, what, hint, nil)
	}
	size := uint64(len(data))
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		if looksDamaged(data) {
			return fail(0, "header", "a transfer in text mode has changed the line ends of this file", "transfer it again in binary mode")
		}
		return fail(0, "header", fmt.Sprintf("no .mlxg file: it begins with %q, not with %q", data[:min(len(data), len(magic))], magic), "")
	}
	if size < fixedHeader {
		return fail(0, "header", fmt.Sprintf("file ends after %d bytes, a header has at least %d", size, fixedHeader+4), "the file is truncated: get it again")
	}
	le := binary.LittleEndian
	if v := le.Uint32(data[8:]); v != Version {
		hint := "update this program"
		if v < Version {
			hint = "record the graph again"
		}
		return fail(8, "header", fmt.Sprintf("file has version %d of the format, this program reads version %d", v, Version), hint)
	}
	n := le.Uint32(data[12:])
	if n == 0 || n > maxSections {
		return fail(12, "header", fmt.Sprintf("section count is %d, want 1 to %d", n, maxSections), "")
	}
	end := headerSize(int(n))
	if size < uint64(end) {
		return fail(12, "header", fmt.Sprintf("file ends after %d bytes, a header of %d sections has %d", size, n, end), "the file is truncated: get it again")
	}
	if want, got := le.Uint32(data[end-4:]), crc32.Checksum(data[:end-4], castagnoli); want != got {
		return fail(end-4, "header", fmt.Sprintf("checksum is %08x, the header says %08x", got, want), "the file is damaged: get it again")
	}
	last := uint64(end) // first byte after the previous part
	for i := range int(n) {
		at := fixedHeader + i*entrySize
		b := data[at:]
		s := section{
			kind: sectionKind(b[:4]), flags: le.Uint32(b[4:]),
			offset: le.Uint64(b[8:]), length: le.Uint64(b[16:]), crc: le.Uint32(b[24:]),
		}
		where := "section " + s.kind.String()
		switch known := s.known(); {
		case s.flags&^optional != 0:
			return fail(at+4, where, fmt.Sprintf("flags are %#x, only bit 0 is defined", s.flags), "")
		case !known && s.flags&optional == 0:
			return fail(at, where, fmt.Sprintf("this reader (version %d of the format) does not know this section, and the file says that it cannot be understood without it", Version), "update this program")
		case s.offset < last:
			return fail(at+8, where, fmt.Sprintf("begins at byte %d, inside what lies before it (up to byte %d)", s.offset, last), "")
		case s.offset > size || s.length > size-s.offset:
			return fail(at+8, where, fmt.Sprintf("%d bytes at byte %d end past the end of the file (%d bytes)", s.length, s.offset, size), "the file is truncated: get it again")
		case s.offset-last >= maxGap:
			return fail(at+8, where, fmt.Sprintf("begins at byte %d, %d bytes after what lies before it (at most %d)", s.offset, s.offset-last, maxGap-1), "")
		case len(bytes.TrimLeft(data[last:s.offset], "\x00")) > 0:
			return fail(int(last), where, "the padding before it is not zero", "the file is damaged: get it again")
		case known:
			if _, twice := im.sections[s.kind]; twice {
				return fail(at, where, "stands in the section table twice", "")
			}
			im.sections[s.kind] = s
		default:
			im.unknown = append(im.unknown, s)
		}
		last = s.offset + s.length
	}
	if last != size {
		return fail(int(last), "end", fmt.Sprintf("file has %d bytes, its last section ends at byte %d", size, last), "")
	}
	for _, k := range []sectionKind{metaSection, stringsSection, blobSection} {
		if _, ok := im.sections[k]; !ok {
			return fail(fixedHeader, "section "+k.String(), "is missing", "")
		}
	}
	return im, nil
}

func (s section) known() bool {
	switch s.kind {
	case metaSection, stringsSection, blobSection, weightSection:
		return true
	}
	return false
}

// bytes returns a section's bytes, which lie in the mapping.
func (im *image) bytes(s section) []byte {
	end := s.offset + s.length
	return im.data[s.offset:end:end]
}

// verify checks the checksum of s.
func (im *image) verify(ctx context.Context, s section) error {
	got := uint32(0)
	for piece := range slices.Chunk(im.bytes(s), 16<<20) {
		interrupt.Poll(ctx)
		got = crc32.Update(got, castagnoli, piece)
	}
	if got != s.crc {
		return problem(im.name, int64(s.offset), "section "+s.kind.String(),
			fmt.Sprintf("checksum of its %d bytes is %08x, the header says %08x", s.length, got, s.crc), "the file is damaged: get it again", nil)
	}
	return nil
}

// looksDamaged reports whether data begins with the magic as a transfer in text mode leaves
// it.
func looksDamaged(data []byte) bool {
	for _, m := range []string{
		"\x89MXG\n\x1a\n",       // CR LF → LF
		"\x89MXG\r\r\n\x1a\r\n", // LF → CR LF
		"\x89MXG\r\n\x1a\r\n",   // bare LF → CR LF
		"\x89MXG\n\n\x1a\n",     // CR → LF
		"\x89MXG\r\r\x1a\r",     // LF → CR
		"\x09MXG\r\n\x1a\n",     // seven bits
		"\xef\xbf\xbdMXG",       // decoded as UTF-8
		"\xc2\x89MXG",           // Latin-1 → UTF-8
	} {
		if bytes.HasPrefix(data, []byte(m)) {
			return true
		}
	}
	return false
}
