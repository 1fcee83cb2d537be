package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/files/atomicfile"
)

// Write writes an array in version 1.
func Write(w io.Writer, a *Array) error {
	if err := write(w, a); err != nil {
		return fmt.Errorf("npy: %w", err)
	}
	return nil
}

func write(w io.Writer, a *Array) error {
	if err := a.check(); err != nil {
		return err
	}
	if _, err := w.Write(headerBytes(a)); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if _, err := w.Write(a.Data); err != nil {
		return fmt.Errorf("elements: %w", err)
	}
	return nil
}

// headerBytes returns everything before the elements, which begin at a multiple of 64
// bytes. NumPy leaves room for the first dimension to grow to 21 digits; so does this,
// in order to write the same bytes.
func headerBytes(a *Array) []byte {
	const growth, align = 21, 64
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", a.DType.descr(), tuple(a.Shape))
	if len(a.Shape) > 0 {
		text += strings.Repeat(" ", growth-len(strconv.Itoa(a.Shape[0])))
	}
	start := len(magic) + 2 + 2
	end := (start + len(text) + 1 + align - 1) / align * align
	b := append(make([]byte, 0, end), magic+"\x01\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(end-start))
	b = append(b, text...)
	for len(b) < end-1 {
		b = append(b, ' ')
	}
	return append(b, '\n')
}

// Save writes an array to a file. It writes a new file beside it, which then replaces
// it, so that nobody sees half an array.
func Save(path string, a *Array) error {
	if err := save(path, a); err != nil {
		return fmt.Errorf("npy: %s: not written: %w", path, err)
	}
	return nil
}

func save(path string, a *Array) error {
	return atomicfile.Replace(path, func(f *os.File) error { return write(f, a) })
}
