//go:build linux && (amd64 || arm64) && !gpu

package cuda_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/internal/testing/fakecuda"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

const injection = "NVTX_INJECTION64_PATH"

// tool compiles and loads a tool that takes ranges. It returns its path, and a function for what it got since the
// last call.
func tool(t *testing.T) (path string, heard func() string) {
	t.Helper()
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "tool.so")
	out, err := c.Program(t.Context(), "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-nostdlib", "-fno-builtin", "-o", path, "testdata/tool.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	text, err := purego.Dlsym(lib, "tool_heard")
	require.NoError(t, err)
	length, err := purego.Dlsym(lib, "tool_length")
	require.NoError(t, err)
	return path, func() string {
		n := *(**uint32)(unsafe.Pointer(&length))
		s := string(unsafe.Slice(*(**byte)(unsafe.Pointer(&text)), *n))
		*n = 0
		return s
	}
}

// grouped returns a graph with labels and nested groups, one of which is empty.
func grouped(t *testing.T) *ir.Graph {
	s := record.New("steps")
	x := s.State("x", ir.F32, 64)
	s.Add(x, x, record.Into(x), record.Label("first"))
	s.Add(x, x, record.Into(x))
	s.Add(x, x, record.Into(x), record.Label("third"))
	g, err := s.Graph()
	require.NoError(t, err)
	group := func(label string) ir.Node { return &ir.GroupBegin{Label: label} }
	end := &ir.GroupEnd{}
	var nodes []ir.Node
	for i, n := range g.Nodes {
		if i == 0 {
			nodes = append(nodes, group("layer 0"), group("nothing"), end, group("attention"))
		}
		nodes = append(nodes, n)
		if i == 0 {
			nodes = append(nodes, end)
		}
	}
	g.Nodes = append(nodes, end)
	require.NoError(t, g.Check())
	return g
}

// TestRanges: a tool gets a range for each submission and, where commands are launched one by one, for groups and
// labels, in their order. Without the environment variable it gets none.
func TestRanges(t *testing.T) {
	path, heard := tool(t)
	g := grouped(t)
	const each = "<layer 0<nothing><attention<first>><third>>"
	for name, c := range map[string]struct {
		plan cuda.Plan
		want string
	}{"stream": {cuda.Stream, "<steps" + each + each + each + ">"}, "chain": {cuda.Chain, "<steps>"}} {
		t.Run(name, func(t *testing.T) {
			for _, told := range []bool{true, false} {
				t.Setenv(injection, map[bool]string{true: path}[told])
				x := serve(t, fakecuda.Options{})
				d := standIn(t, cuda.Options{Plan: c.plan})
				require.NoError(t, d.NoRanges())
				q, err := d.NewQueue()
				require.NoError(t, err)
				state, err := d.Alloc(backend.BufferSpec{Size: 256})
				require.NoError(t, err)
				exec, err := d.Compile(t.Context(), &backend.Program{Graph: g, Places: []backend.Place{backend.At(state)}})
				require.NoError(t, err)
				frame, err := exec.NewFrame(backend.FrameSpec{Replays: 3})
				require.NoError(t, err)
				p, err := q.Submit(t.Context(), backend.Submission{Executable: exec, Frame: frame, Replays: 3})
				require.NoError(t, err)
				require.NoError(t, p.Wait(context.Background()))
				assert.Equal(t, map[bool]string{true: c.want}[told], heard())
				require.NoError(t, q.Close())
				require.NoError(t, frame.Close())
				require.NoError(t, exec.Close())
				require.NoError(t, state.Close())
				require.NoError(t, d.Close())
				quit(t, x)
			}
		})
	}

	// Of a live recording it gets the labels alone: groups are no part of command buffers.
	t.Setenv(injection, path)
	x := serve(t, fakecuda.Options{})
	d := standIn(t, cuda.Options{})
	e := record.NewEncoder("live", record.Live(d))
	e.Encode(g)
	_, err := e.Finish()
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, d.Close())
	quit(t, x)
	assert.Equal(t, "<first><third>", heard())
}

// TestBrokenTool: a tool that cannot be used changes nothing, and the device says why.
func TestBrokenTool(t *testing.T) {
	serve(t, fakecuda.Options{})
	file := filepath.Join(t.TempDir(), "no.so")
	require.NoError(t, os.WriteFile(file, []byte("no library"), 0o600))
	for _, path := range []string{file, file + "x"} {
		t.Setenv(injection, path)
		d := standIn(t, cuda.Options{})
		require.ErrorContains(t, d.NoRanges(), "cuda: the tool of NVTX_INJECTION64_PATH: ")
		require.NoError(t, d.Close())
	}
}
