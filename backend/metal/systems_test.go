//go:build linux

package metal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/ir"
)

// TestFloor: macOS before 14 and Intel processors are refused, with a reason, before a selector that the
// system does not know is sent.
func TestFloor(t *testing.T) {
	serve(t, fakemetal.Options{MacOS: 13})
	_, err := metal.Open(metal.Options{})
	require.ErrorContains(t, err, "metal: this Mac runs macOS 13.0 (software Metal), and Metal is used from macOS 14 on: ")
	_, err = metal.List()
	require.ErrorContains(t, err, "update the system")

	require.NoError(t, metal.Machine("darwin", "arm64"))
	require.NoError(t, metal.Machine("linux", "amd64"))
	require.ErrorContains(t, metal.Machine("darwin", "amd64"), "Macs with Intel's processors are not supported")
}

// TestTexts: sources and file paths that are not UTF-8 or contain a zero byte are refused, with the position
// of the byte, and never reach Metal as nil or cut short.
func TestTexts(t *testing.T) {
	const kernel = "#include <metal_stdlib>\nkernel void k(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = 1; }\n"
	dir := t.TempDir()
	m := serve(t, fakemetal.Options{})
	d := open(t, metal.Options{})
	compile := func(library ir.Library) error {
		b := ir.NewBuilder("c")
		y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 64, DType: ir.F32})
		k := b.Kernel(ir.Kernel{Name: "k", Library: library, Function: "k", Args: []ir.Arg{{Slot: 0, Name: "y", Kind: ir.DeviceArg, Access: ir.WriteArg, Type: ir.F32}}})
		v := ir.ViewOf(y, 0, 64)
		b.Dispatch(ir.Dispatch{Kernel: k, Bindings: []ir.Binding{ir.BufferArg(0, v)}, GridKind: ir.Threads, Grid: extent(16, 1, 1), Threadgroup: [3]uint32{16, 1, 1},
			Effects: &ir.Effects{Complete: true, Writes: []ir.Write{{Region: v.Contiguous(), Must: true}}}})
		e, err := d.Compile(t.Context(), &backend.Program{Graph: b.Unfinished()})
		if err == nil {
			err = e.Close()
		}
		return err
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	require.NoError(t, compile(ir.Library{Kind: ir.SourceFile, Path: file("right.metal", "// µs\n"+kernel)}))
	compiled := len(m.Compiled())
	require.ErrorContains(t, compile(ir.Library{Kind: ir.SourceFile, Path: file("latin1.metal", "// \xb5s\n"+kernel)}), "latin1.metal: byte 3 is no UTF-8 text")
	require.ErrorContains(t, compile(ir.Library{Kind: ir.SourceFile, Path: file("zero.metal", "//\x00\n"+kernel)}), "zero.metal: byte 2 is no UTF-8 text")
	require.ErrorContains(t, compile(ir.Library{Kind: ir.Metallib, Path: file("\xb5.metallib", "")}), `\xb5.metallib": byte `)
	require.Len(t, m.Compiled(), compiled, "something was compiled")
	require.NoError(t, d.Close())
}
