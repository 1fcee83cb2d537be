// Package metallibs gives tests the compiled Metal libraries that they read: those of MLX, which
// scripts/fetch-metallib.sh fetches, and small ones made of their kernels.
package metallibs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/internal/metallib"
)

// Versions are the versions of MLX whose libraries tests read. Both have version 2.7 of the container; the older one
// has no reflection, and encodes public metadata otherwise.
var Versions = []string{"0.16.3", "0.32.4"}

// root returns the folder of the module above the working folder.
func root(t testing.TB) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working folder")
		}
		dir = up
	}
}

// Path returns where MLX's library is. A test that needs it fails without it.
func Path(t testing.TB, version string) string {
	t.Helper()
	path := filepath.Join(root(t), "out", "metallib", "mlx-"+version+".metallib")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the Metal library of MLX %s is missing: run scripts/fetch-metallib.sh %s (%v)", version, version, err)
	}
	return path
}

// Headers returns the folder of headers of MLX 0.32.4's kernels: those that its library was
// compiled from, as far as its wheel has them. A test that needs it fails without it.
func Headers(t testing.TB) string {
	t.Helper()
	path := filepath.Join(root(t), "out", "metallib", "mlx-0.32.4-include")
	if _, err := os.Stat(filepath.Join(path, "mlx", "backend", "metal", "kernels", "utils.h")); err != nil {
		t.Fatalf("the headers of MLX 0.32.4's kernels are missing: run scripts/fetch-metallib.sh 0.32.4 (%v)", err)
	}
	return path
}

// GGML returns where the Metal source of ggml is, one file with all headers. A test that needs it
// fails without it.
func GGML(t testing.TB) string {
	t.Helper()
	path := filepath.Join(root(t), "out", "metal-sources", "ggml-0.13.1", "ggml-metal.metal")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the Metal source of ggml 0.13.1 is missing: run scripts/fetch-ggml.sh (%v)", err)
	}
	return path
}

// Bytes returns MLX's library, mapped until the test ends.
func Bytes(t testing.TB, version string) []byte {
	t.Helper()
	m, err := mmap.Open(Path(t, version))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m.Bytes()
}

// Open returns MLX's library, open until the test ends.
func Open(t testing.TB, version string) *metallib.Library {
	t.Helper()
	lib, err := metallib.Parse("mlx-"+version+".metallib", Bytes(t, version))
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// Table returns the lines of the table of a library's kernels, without comments
// (testdata/gen/README.md).
func Table(t testing.TB, version string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(root(t), "testdata", "metallib", "mlx-"+version+".tsv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for l := range strings.Lines(string(text)) {
		if !strings.HasPrefix(l, "#") {
			lines = append(lines, strings.TrimSuffix(l, "\n"))
		}
	}
	return lines
}

// Function is a function of a library that [Write] makes.
type Function struct {
	Name      string
	Type      byte // 2 is a kernel
	Bitcode   []byte
	Constants []byte // the record CNST without its tag and length; nil for none
}

// Functions returns kernels of MLX 0.32.4 for [Write].
func Functions(t testing.TB, names ...string) (out []Function) {
	t.Helper()
	lib := Open(t, "0.32.4")
	for _, name := range names {
		module, err := lib.Bitcode(name)
		if err != nil {
			t.Fatal(err)
		}
		k, err := lib.Describe(name)
		if err != nil {
			t.Fatal(err)
		}
		f := Function{Name: name, Type: 2, Bitcode: bytes.Clone(module)}
		if len(k.Constants) > 0 {
			f.Constants = binary.LittleEndian.AppendUint16(nil, uint16(len(k.Constants)))
			for _, c := range k.Constants {
				f.Constants = append(append(f.Constants, c.Name...), 0, map[string]byte{"bool": 0x35, "int": 0x1d}[c.Type])
				f.Constants = append(binary.LittleEndian.AppendUint16(f.Constants, uint16(c.Index)), 1)
			}
		}
		out = append(out, f)
	}
	return out
}

// Write returns a library of the functions.
func Write(functions []Function) []byte {
	le := binary.LittleEndian
	record := func(b []byte, tag string, payload []byte) []byte {
		return append(le.AppendUint16(append(b, tag...), uint16(len(payload))), payload...)
	}
	list := le.AppendUint32(nil, uint32(len(functions)))
	var public, code []byte
	for _, f := range functions {
		sum := sha256.Sum256(f.Bitcode)
		var e []byte
		e = record(e, "NAME", append([]byte(f.Name), 0))
		e = record(e, "TYPE", []byte{f.Type})
		e = record(e, "HASH", sum[:])
		e = record(e, "OFFT", le.AppendUint64(le.AppendUint64(le.AppendUint64(nil, uint64(len(public))), 0), uint64(len(code))))
		e = record(e, "VERS", []byte{2, 0, 6, 0, 3, 0, 1, 0})
		e = record(e, "MDSZ", le.AppendUint64(nil, uint64(len(f.Bitcode))))
		e = record(e, "RFLT", le.AppendUint64(nil, 0))
		e = append(e, "ENDT"...)
		list = append(le.AppendUint32(list, uint32(len(e)+4)), e...)
		var p []byte
		if f.Constants != nil {
			p = record(p, "CNST", f.Constants)
		}
		p = append(p, "ENDT"...)
		public = append(le.AppendUint32(public, uint32(len(p)+4)), p...)
		code = append(code, f.Bitcode...)
	}
	const header = 88
	extension := []byte("ENDT")
	private := []byte{8, 0, 0, 0, 'E', 'N', 'D', 'T'}
	out := append([]byte("MTLB"), 1, 0x80, 2, 0, 7, 0, 0, 0x81, 14, 0, 0, 0)
	at := uint64(header + len(list) + len(extension))
	total := at + uint64(len(public)+len(private)+len(code))
	out = le.AppendUint64(out, total)
	out = le.AppendUint64(le.AppendUint64(out, header), uint64(len(list)-4))
	for _, s := range [][]byte{public, private, code} {
		out = le.AppendUint64(le.AppendUint64(out, at), uint64(len(s)))
		at += uint64(len(s))
	}
	for _, s := range [][]byte{list, extension, public, private, code} {
		out = append(out, s...)
	}
	return out
}

// Small returns a library of some kernels of MLX 0.32.4.
func Small(t testing.TB, names ...string) []byte {
	t.Helper()
	return Write(Functions(t, names...))
}
