package bitcode_test

import (
	"testing"

	"github.com/mlxc/mlxc/internal/metallib/bitcode"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
)

// touch reads everything that a module offers.
func touch(m *bitcode.Module) (found int) {
	var node func(n bitcode.Node, depth int)
	node = func(n bitcode.Node, depth int) {
		for i := range min(n.Len(), 8) {
			o := n.Operand(i)
			if next, ok := o.Node(); ok && depth < 3 {
				node(next, depth+1)
			}
			o.Text()
			o.Int()
			o.Bool()
			if f, ok := o.Function(); ok {
				found += len(f.Name)
			}
			if g, ok := o.Global(); ok {
				found += len(g.Name)
			}
		}
	}
	for _, name := range []string{"air.kernel", "air.function_constants", "air.version"} {
		for _, n := range m.Named(name) {
			node(n, 0)
		}
	}
	return found
}

// FuzzRead feeds modules that are nearly right.
func FuzzRead(f *testing.F) {
	lib := metallibs.Open(f, "0.32.4")
	for _, name := range []string{"gg1_copybool_bool_", "rmsfloat32", "gemv_wide_bfloat16_nv2_kl16"} {
		data, err := lib.Bitcode(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append([]byte(nil), data...))
	}
	f.Add(module(func(w *writer) {
		w.block(17, width, func(w *writer) { w.record(7, 8).record(2).record(21, 0, 1) })
		w.record(8, 0, 6, 2, 0, 0, 0)
		w.block(15, width, func(w *writer) { w.strings("a", "b"); w.record(3, 1, 2) })
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := bitcode.Read(data)
		if (err == nil) == (m == nil) {
			t.Fatal("a module or an error")
		}
		if m != nil {
			touch(m)
		}
	})
}

// A kernel's module with any one bit flipped, and any shorter part of it, is read or refused without a panic.
func TestDamaged(t *testing.T) {
	data, err := metallibs.Open(t, "0.32.4").Bitcode("gg1_copybool_bool_")
	if err != nil {
		t.Fatal(err)
	}
	good, bad := 0, 0
	try := func(b []byte) {
		if m, err := bitcode.Read(b); err == nil {
			touch(m)
			good++
		} else {
			bad++
		}
	}
	b := append([]byte(nil), data...)
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		try(b)
		b[i/8] ^= 1 << (i % 8)
	}
	if good == 0 || bad == 0 {
		t.Errorf("%d damaged modules were read, %d refused", good, bad)
	}
	for n := range len(data) {
		try(data[:n])
	}
}
