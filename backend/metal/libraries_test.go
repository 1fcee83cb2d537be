//go:build linux

package metal_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// chain returns a graph that applies kernels of one argument to 64 floats, one after another.
func chain(t testing.TB, functions ...string) *ir.Graph {
	t.Helper()
	const n = 64
	b := ir.NewBuilder("chain")
	at := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 4 * n})
	for i, f := range functions {
		to := ir.Memory{Name: fmt.Sprint("s", i), Kind: ir.Scratch, Size: 4 * n}
		if i == len(functions)-1 {
			to.Name, to.Kind = "y", ir.Output
		}
		next := b.Memory(to)
		b.Dispatch(ir.Dispatch{
			Kernel: b.Kernel(msl.Declarations(f)[0].Kernel(fmt.Sprint(f, i))), Grid: [3]ir.Extent{ir.Ext(n), ir.Ext(1), ir.Ext(1)}, GridKind: ir.Threads, Threadgroup: [3]uint32{n, 1, 1},
			Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(at, 0, 4*n)), ir.BufferArg(1, ir.ViewOf(next, 0, 4*n))},
		})
		b.Barrier()
		at = next
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// prepared compiles a graph and returns the progress that was reported.
func prepared(d *metal.Device, g *ir.Graph) (progress []float64, err error) {
	e, err := d.Compile(context.Background(), &backend.Program{Graph: g, Progress: func(done float64) { progress = append(progress, done) }})
	if err != nil {
		return nil, err
	}
	return progress, e.Close()
}

var (
	macro    = regexp.MustCompile(`(?m)^#define (.*\\\n)*.*$`)
	hostName = regexp.MustCompile(`template\W+host_name\s*\(((\s*"\w*")+)\s*\)`)
)

// instances returns the names of the kernels that a source instantiates from templates, outside of macros.
func instances(text string) (out []string) {
	for _, m := range hostName.FindAllStringSubmatch(macro.ReplaceAllString(text, ""), -1) {
		out = append(out, strings.NewReplacer(`"`, "", " ", "").Replace(m[1]))
	}
	return out
}

// TestOnlyNeeded: of each source only the kernels that a graph needs are compiled, all at once, and of a later
// graph only those that are new; always with the same compile options.
func TestOnlyNeeded(t *testing.T) {
	for macOS, options := range map[int]fakemetal.Compiled{
		14: {MathMode: -1, Precise: true, Language: 3<<16 + 1}, 15: {FastMath: true, MathMode: 0, Precise: true, Language: 3<<16 + 1},
	} {
		m := serve(t, fakemetal.Options{MacOS: macOS})
		d := open(t, metal.Options{Cache: metal.NoCache})
		for _, c := range []struct {
			functions []string
			want      [][]string // by source
		}{
			{[]string{"v_Silufloat32float32", "v_Gelufloat32float32", "v_Sigmoidfloat32float32", "v_Silufloat32float32"},
				[][]string{{"v_Gelufloat32float32"}, {"v_Sigmoidfloat32float32", "v_Silufloat32float32"}}},
			{[]string{"v_Sigmoidfloat32float32", "v_GeluErffloat32float32"}, [][]string{{"v_GeluErffloat32float32"}}},
			{[]string{"v_Gelufloat32float32", "v_GeluErffloat32float32", "v_Silufloat32float32"}, nil},
		} {
			before := len(m.Compiled())
			progress, err := prepared(d, chain(t, c.functions...))
			require.NoError(t, err)
			assert.True(t, slices.IsSorted(progress))
			assert.Equal(t, 1.0, progress[len(progress)-1])
			var got [][]string
			for _, k := range m.Compiled()[before:] {
				got = append(got, instances(k.Source))
				k.Source = ""
				assert.Equal(t, options, k, "macOS %d", macOS)
			}
			slices.SortFunc(got, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
			assert.Equal(t, c.want, got)
		}
		require.NoError(t, d.Close())
		m.Close()
	}
}

// TestPrecompiled: kernels come from Options.Precompiled; if that cannot be used, or lacks some, they are
// compiled from their source, after one warning.
func TestPrecompiled(t *testing.T) {
	m := serve(t, fakemetal.Options{})
	dir := t.TempDir()
	library := func(name string, functions ...metallibs.Function) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, metallibs.Write(functions), 0o600))
		return path
	}
	sigmoid := metallibs.Functions(t, "v_Sigmoidfloat32float32")[0]
	stamp := sigmoid
	stamp.Name = metal.Stamp()
	torn := filepath.Join(dir, "torn")
	require.NoError(t, os.WriteFile(torn, []byte("MTLB"), 0o600))
	g := chain(t, "v_Sigmoidfloat32float32", "v_Silufloat32float32")
	var want []map[string][]byte
	for _, c := range []struct {
		name, path string
		compiled   []string
		warnings   []string
	}{
		{"none", "", []string{"v_Sigmoidfloat32float32", "v_Silufloat32float32"}, nil},
		{"ours", library("ours", sigmoid, stamp), []string{"v_Silufloat32float32"}, []string{"lacks the kernel v_Silufloat32float32: what it lacks is compiled from its source"}},
		{"another's", library("other", sigmoid), []string{"v_Sigmoidfloat32float32", "v_Silufloat32float32"}, []string{"was not made of the kernels of this version"}},
		{"torn", torn, []string{"v_Sigmoidfloat32float32", "v_Silufloat32float32"}, []string{"the precompiled kernels of " + torn + " are not used"}},
		{"missing", filepath.Join(dir, "nothing"), []string{"v_Sigmoidfloat32float32", "v_Silufloat32float32"}, []string{"no such file"}},
	} {
		var warnings []string
		before := len(m.Compiled())
		d := open(t, metal.Options{Precompiled: c.path, Cache: metal.NoCache, Warn: func(w string) { warnings = append(warnings, w) }})
		got := replayed(t, d, g)
		if want == nil {
			want = got
		}
		assert.Equal(t, want, got, c.name)
		_, err := prepared(d, chain(t, "v_Gelufloat32float32"))
		require.NoError(t, err)
		require.NoError(t, d.Close())
		var compiled []string
		for _, k := range m.Compiled()[before:] {
			compiled = append(compiled, instances(k.Source)...)
		}
		assert.Equal(t, append(c.compiled, "v_Gelufloat32float32"), compiled, c.name)
		require.Len(t, warnings, len(c.warnings), c.name)
		for i := range warnings {
			assert.Contains(t, warnings[i], c.warnings[i], c.name)
		}
	}
}

// TestStamp: the script that makes a precompiled library compiles all sources, and a function with the name
// that the backend looks for.
func TestStamp(t *testing.T) {
	dir := t.TempDir()
	// An xcrun for the script: it notes the sources that it is given and writes empty results.
	tool := "#!/bin/sh\nfor last; do :; done\ncase \"$last\" in *.metal) cat \"$last\" >>\"$LOG\";; esac\n" +
		"while [ $# -gt 0 ]; do if [ \"$1\" = -o ]; then echo \"$2\" >\"$2\"; fi; shift; done\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "xcrun"), []byte(tool), 0o700))
	log, out := filepath.Join(dir, "log"), filepath.Join(dir, "mlxc.metallib")
	cmd := exec.Command("../../scripts/metallib.sh", out)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "LOG="+log)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	assert.FileExists(t, out)
	given, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Contains(t, string(given), "kernel void "+metal.Stamp()+"()")
	assert.Contains(t, string(given), "mlxc_guard(")
	for _, file := range msl.Files() {
		text, err := fs.ReadFile(msl.Own(), file) // it includes headers of its folder
		require.NoError(t, err)
		assert.True(t, strings.Contains(string(given), string(text)), file)
	}
}

// TestSideBySide: libraries and pipelines that several goroutines ask for at once are made once.
func TestSideBySide(t *testing.T) {
	m := serve(t, fakemetal.Options{})
	small := filepath.Join(t.TempDir(), "small.metallib")
	require.NoError(t, os.WriteFile(small, metallibs.Small(t, "v_Sigmoidfloat32float32"), 0o600))
	l := fakemetal.Build(t)
	opened, made := l.Sent("newLibraryWithURL:error:"), l.Made("MTLComputePipelineState")
	d := open(t, metal.Options{Library: small, Cache: metal.NoCache})
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			_, err := prepared(d, chain(t, "v_Sigmoidfloat32float32", "v_Silufloat32float32", "v_Gelufloat32float32"))
			assert.NoError(t, err)
		})
	}
	wait.Wait()
	assert.Len(t, m.Compiled(), 2)
	assert.Equal(t, 1, l.Sent("newLibraryWithURL:error:")-opened)
	assert.Equal(t, 3, l.Made("MTLComputePipelineState")-made)
	require.NoError(t, d.Close())
}

// TestCompileFaults: a failure of the compiler is a clear error, and the next attempt works.
func TestCompileFaults(t *testing.T) {
	g := chain(t, "v_Sigmoidfloat32float32", "v_Silufloat32float32", "v_Gelufloat32float32")
	for _, c := range []struct {
		fault fakemetal.Fault
		want  string
	}{
		{fakemetal.Fault{On: fakemetal.Compilation, Nth: 1}, "the source does not compile: the compiler has ended without a word"},
		{fakemetal.Fault{On: fakemetal.Compilation, Nth: 2, Text: "no room"}, "the source does not compile: no room"},
		{fakemetal.Fault{On: fakemetal.PipelineState, Nth: 1}, "no pipeline can be made of it: the compiler's service has ended"},
		{fakemetal.Fault{On: fakemetal.PipelineState, Nth: 3, Text: "no registers"}, "no pipeline can be made of it: no registers"},
	} {
		m := serve(t, fakemetal.Options{Faults: []fakemetal.Fault{c.fault}})
		d := open(t, metal.Options{Cache: metal.NoCache})
		_, err := prepared(d, g)
		require.ErrorContains(t, err, c.want)
		assert.ErrorContains(t, err, "metal: graph chain: #")
		_, err = prepared(d, g)
		require.NoError(t, err, "%+v", c.fault)
		require.NoError(t, d.Close())
		m.Close()
	}
}

// constants is a kernel with function constants of all types but bfloat, which the compiler of the stand-in
// does not support for them.
const constants = `#include <metal_stdlib>
using namespace metal;
constant bool a [[function_constant(0)]];
constant char b [[function_constant(1)]];
constant uchar c [[function_constant(2)]];
constant short d [[function_constant(3)]];
constant ushort e [[function_constant(4)]];
constant int f [[function_constant(5)]];
constant uint g [[function_constant(6)]];
constant long h [[function_constant(7)]];
constant ulong i [[function_constant(8)]];
constant half j [[function_constant(9)]];
constant float k [[function_constant(10)]];
kernel void constants(device ulong* out [[buffer(0)]]) {
  out[0] = a; out[1] = ulong(long(b)); out[2] = c; out[3] = ulong(long(d)); out[4] = e; out[5] = ulong(long(f));
  out[6] = g; out[7] = ulong(h); out[8] = i; out[9] = as_type<ushort>(j); out[10] = as_type<uint>(k);
}
`

// TestConstants: kernels see the values of function constants of all types; other values make another pipeline.
func TestConstants(t *testing.T) {
	path := filepath.Join(t.TempDir(), "constants.metal")
	require.NoError(t, os.WriteFile(path, []byte(constants), 0o600))
	m := serve(t, fakemetal.Options{})
	d := open(t, metal.Options{Cache: metal.NoCache})
	types := []ir.DType{ir.Bool, ir.I8, ir.U8, ir.I16, ir.U16, ir.I32, ir.U32, ir.I64, ir.U64, ir.F16, ir.F32}
	for _, bits := range [][]uint64{
		{1, 0x80, 0xff, 0x8000, 0xffff, 0x80000000, 0xffffffff, 1 << 63, 1<<64 - 1, 0x3c01, 0x3f800001},
		{0, 0x7f, 1, 0x7fff, 1, 0x7fffffff, 1, 1<<63 - 1, 1, 0xbc00, 0xbf800000},
	} {
		k := ir.Kernel{Name: "constants", Library: ir.Library{Kind: ir.SourceFile, Path: path}, Function: "constants",
			Args: []ir.Arg{{Slot: 0, Name: "out", Kind: ir.DeviceArg, Access: ir.WriteArg, Type: ir.U64}}}
		want := make([]byte, 8*len(bits))
		for i, v := range bits {
			k.Constants = append(k.Constants, ir.FunctionConstant{Index: uint16(i), Name: string(rune('a' + i)), Type: types[i], Bits: v})
			shift := 64 - 8*types[i].Size()
			if slices.Contains([]ir.DType{ir.I8, ir.I16, ir.I32}, types[i]) {
				v = uint64(int64(v<<shift) >> shift)
			}
			binary.LittleEndian.PutUint64(want[8*i:], v)
		}
		b := ir.NewBuilder("constants")
		out := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: int64(len(want)), Align: 8})
		one := [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}
		b.Dispatch(ir.Dispatch{Kernel: b.Kernel(k), Grid: one, GridKind: ir.Threads, Threadgroup: [3]uint32{1, 1, 1}, Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(out, 0, int64(len(want))))}})
		g, err := b.Graph()
		require.NoError(t, err)
		assert.Equal(t, want, replayed(t, d, g)[0]["y"])
	}
	assert.Len(t, m.Compiled(), 1)
	require.NoError(t, d.Close())
}

// TestOnePipelineEach: kernels of the same name in two sources have two pipelines, and so have indirect
// command buffers and live recordings.
func TestOnePipelineEach(t *testing.T) {
	serve(t, fakemetal.Options{})
	d := open(t, metal.Options{Plan: metal.Indirect, Cache: metal.NoCache})
	for i := range 2 {
		path := filepath.Join(t.TempDir(), "same.metal")
		text := fmt.Sprintf("#include <metal_stdlib>\nusing namespace metal;\nkernel void same(device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = %d; }\n", 7+i)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		b := ir.NewBuilder("same")
		y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4})
		k := b.Kernel(ir.Kernel{Name: "same", Library: ir.Library{Kind: ir.SourceFile, Path: path}, Function: "same",
			Args: []ir.Arg{{Slot: 0, Name: "out", Kind: ir.DeviceArg, Access: ir.WriteArg, Type: ir.U32}}})
		one := [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}
		b.Dispatch(ir.Dispatch{Kernel: k, Grid: one, GridKind: ir.Threads, Threadgroup: [3]uint32{1, 1, 1}, Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(y, 0, 4))}})
		g, err := b.Graph()
		require.NoError(t, err)
		want := []byte{byte(7 + i), 0, 0, 0}
		assert.Equal(t, want, dispatched(t, d, g)[0]["y"])
		assert.Equal(t, want, replayed(t, d, g)[0]["y"])
	}
	require.NoError(t, d.Close())
}
