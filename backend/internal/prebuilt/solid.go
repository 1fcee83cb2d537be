package prebuilt

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Kernels of one family are the same text with other numbers, tens of kilobytes apart: further than
// flate looks back. So what stood before is taken out first, at any distance, and flate gets the rest,
// which is about a third of what it makes of the texts themselves.

const (
	// shortest is how many bytes have to be equal for a reference to be worth it.
	shortest = 24
	// chain is how many earlier places are looked at.
	chain = 64
)

// pack compresses a text. The same text gives the same bytes.
func pack(text []byte) ([]byte, error) {
	const bits = 18
	var head [1 << bits]int32 // by hash of 8 bytes: the last place that has them, plus 1
	before := make([]int32, len(text))
	hash := func(i int) uint32 {
		return uint32(binary.LittleEndian.Uint64(text[i:]) * 0x9e3779b97f4a7c15 >> (64 - bits))
	}
	enter := func(i int) {
		if i+8 <= len(text) {
			h := hash(i)
			before[i], head[h] = head[h], int32(i+1)
		}
	}
	var references, rest []byte
	done := 0 // what is in references and rest
	for i := 0; i+8 <= len(text); {
		best, from := 0, 0
		for at, n := head[hash(i)], 0; at > 0 && n < chain; at, n = before[at-1], n+1 {
			j := int(at - 1)
			if i+best < len(text) && text[j+best] != text[i+best] {
				continue
			}
			k := 0
			for i+k < len(text) && text[j+k] == text[i+k] {
				k++
			}
			if k > best {
				best, from = k, j
			}
		}
		if best < shortest {
			enter(i)
			i++
			continue
		}
		references = binary.AppendUvarint(references, uint64(i-done))
		references = binary.AppendUvarint(references, uint64(best))
		references = binary.AppendUvarint(references, uint64(i-from))
		rest = append(rest, text[done:i]...)
		for end := i + best; i < end; i++ {
			enter(i)
		}
		done = i
	}
	rest = append(rest, text[done:]...)
	var out bytes.Buffer
	var sizes [8]byte
	out.Write(sizes[:])
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	for k, part := range [][]byte{references, rest} {
		binary.LittleEndian.PutUint32(sizes[4*k:], uint32(len(part)))
		if _, err := w.Write(part); err != nil {
			return nil, err
		}
		if err := w.Flush(); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	copy(out.Bytes(), sizes[:])
	return out.Bytes(), nil
}

var errPacked = errors.New("what was compressed is damaged")

// unpack returns the text of size bytes that pack was given.
func unpack(data []byte, size int) ([]byte, error) {
	if len(data) < 8 {
		return nil, errPacked
	}
	parts := [2][]byte{}
	r := flate.NewReader(bytes.NewReader(data[8:]))
	for k := range parts {
		n := int64(binary.LittleEndian.Uint32(data[4*k:]))
		// References take less than what they stand for.
		if n > int64(size) {
			return nil, errPacked
		}
		parts[k] = make([]byte, n)
		if _, err := io.ReadFull(r, parts[k]); err != nil {
			return nil, fmt.Errorf("%w: %w", errPacked, err)
		}
	}
	references, rest := parts[0], parts[1]
	out := make([]byte, 0, size)
	for len(references) > 0 {
		var v [3]uint64
		for k := range v {
			n := 0
			if v[k], n = binary.Uvarint(references); n <= 0 {
				return nil, errPacked
			}
			references = references[n:]
		}
		plain, length, back := v[0], v[1], v[2]
		if plain > uint64(len(rest)) {
			return nil, errPacked
		}
		out, rest = append(out, rest[:plain]...), rest[plain:]
		if length > uint64(size-len(out)) || back == 0 || back > uint64(len(out)) {
			return nil, errPacked
		}
		for from := len(out) - int(back); length > 0; { // a reference may reach into what it makes
			n := min(int(length), len(out)-from)
			out = append(out, out[from:from+n]...)
			length -= uint64(n)
		}
	}
	if len(out)+len(rest) != size {
		return nil, errPacked
	}
	return append(out, rest...), nil
}
