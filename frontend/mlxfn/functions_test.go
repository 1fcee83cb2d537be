package mlxfn_test

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/mlxfn"
	"github.com/mlxc/mlxc/frontend/safetensors"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// archive returns the files of testdata/mlxfn/functions.zip.
func archive(t testing.TB) map[string][]byte {
	z, err := zip.OpenReader("../../testdata/mlxfn/functions.zip")
	require.NoError(t, err)
	defer z.Close()
	out := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		out[f.Name], err = io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}
	return out
}

// beside opens a file that stands beside the archive.
func beside(t testing.TB, name string) *mlxfn.Model {
	m, err := mlxfn.Open("../../testdata/mlxfn/" + name + ".mlxfn")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// opened returns a function of the archive, as a file.
func opened(t testing.TB, files map[string][]byte, name string) *mlxfn.Model {
	path := filepath.Join(t.TempDir(), "f.mlxfn")
	require.NoError(t, os.WriteFile(path, files[name+".mlxfn"], 0o644))
	m, err := mlxfn.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// cases lists the names of functions with results.
func cases(files map[string][]byte) (out []string) {
	for name := range files {
		if base, ok := strings.CutSuffix(name, ".safetensors"); ok {
			out = append(out, base)
		}
	}
	slices.Sort(out)
	return out
}

// tolerances are how far results may be from MLX's, relative to the greatest of an array's elements: units of roundoff of the
// type, as both round in their own order.
var tolerances = map[ir.DType]float64{ir.F32: 1e-5, ir.F16: 4 * 0x1p-11, ir.BF16: 4 * 0x1p-8}

// compare compares elements with MLX's.
func compare(t *testing.T, what string, of ir.DType, got, want []byte, tolerance float64) {
	require.Len(t, got, len(want), what)
	if !of.Float() {
		require.Equal(t, want, got, what)
		return
	}
	a, b := record.Numbers(of, got), record.Numbers(of, want)
	scale := 0.0
	for _, v := range b {
		if !math.IsInf(float64(v), 0) && !math.IsNaN(float64(v)) {
			scale = max(scale, math.Abs(float64(v)))
		}
	}
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		if x == y || math.IsNaN(x) && math.IsNaN(y) {
			continue
		}
		require.LessOrEqual(t, math.Abs(x-y), tolerance*scale, "%s: element %d is %v, MLX has %v", what, i, x, y)
	}
}

// filled sets the inputs of a graph to tensors of a file, by a prefix of their names.
func filled(t *testing.T, g *replay.Graph, f *safetensors.File, prefix string) {
	for _, m := range g.IR().Memories {
		if m.Kind != ir.Input {
			continue
		}
		at := slices.IndexFunc(f.Tensors, func(x safetensors.Tensor) bool { return x.Name == prefix+m.Name })
		require.GreaterOrEqual(t, at, 0, m.Name)
		require.NoError(t, g.SetInput(m.Name, f.Data(f.Tensors[at])))
	}
}

// run records a function without states and compares its results with MLX's.
func run(t *testing.T, d backend.Device, files map[string][]byte, name string, o frontend.Options) {
	m := opened(t, files, name)
	f, err := safetensors.Parse(name, files[name+".safetensors"])
	require.NoError(t, err)
	if o.Traced == nil {
		o.Traced = &frontend.Traced{NoStates: true}
	}
	module, err := m.Record(context.Background(), o)
	require.NoError(t, err)
	s, err := replay.Open(d, module, replay.Options{Poison: true})
	require.NoError(t, err)
	defer s.Close()
	g, err := s.Graph(context.Background(), module.Graphs[0].Name)
	require.NoError(t, err)
	filled(t, g, f, "")
	_, err = g.Run(context.Background())
	require.NoError(t, err)
	count := 0
	for _, x := range f.Tensors {
		if !result.MatchString(x.Name) {
			continue
		}
		got, err := g.Output(x.Name)
		require.NoError(t, err)
		tolerance := tolerances[x.Type]
		switch {
		case strings.Contains(name, "decoder"):
			tolerance *= 8 // of as many operations in a row
		case x.Type != ir.F32 && slices.ContainsFunc(m.Functions[0].Nodes, func(n mlxfn.Node) bool { return n.Name == "QuantizedMatmul" || n.Name == "GatherQMM" }):
			tolerance *= 4 // MLX for CPUs adds up products in the type
		}
		compare(t, x.Name, x.Type, got, f.Data(x), tolerance)
		count++
	}
	require.Positive(t, count)
}

var result = regexp.MustCompile(`^out\d+$`)

// Functions compute what MLX computes.
func TestFunctions(t *testing.T) {
	files := archive(t)
	d := cpu.New(0)
	defer d.Close()
	names := cases(files)
	require.GreaterOrEqual(t, len(names), 40)
	for _, name := range names {
		if strings.HasPrefix(name, "library/") {
			continue // TestLibrary
		}
		t.Run(name, func(t *testing.T) { run(t, d, files, name, frontend.Options{}) })
	}
}

// off returns by how much a tensor is off another one of f32, relative to its greatest element.
func off(f *safetensors.File, x safetensors.Tensor, name string) float64 {
	exactly := f.Tensors[slices.IndexFunc(f.Tensors, func(x safetensors.Tensor) bool { return x.Name == name })]
	a, b := record.Numbers(x.Type, f.Data(x)), record.Numbers(ir.F32, f.Data(exactly))
	most, scale := 0.0, 0.0
	for i := range a {
		most, scale = max(most, math.Abs(float64(a[i]-b[i]))), max(scale, math.Abs(float64(a[i])))
	}
	return most / scale
}

// What MLX's own C++ has exported for a GPU computes what MLX computes, and has the primitives that our traces of the same
// functions have.
func TestExportedForGPU(t *testing.T) {
	files := archive(t)
	d := cpu.New(0)
	defer d.Close()
	paths, err := filepath.Glob("../../testdata/mlxfn/host/*.mlxfn")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 11)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".mlxfn")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			f, err := mlxfn.Parse(path, data)
			require.NoError(t, err)
			require.Equal(t, "exported by testdata/gen/mlxhost/exports.cpp", f.Metadata)
			require.True(t, f.Functions[0].Nodes[0].GPU)
			ours, err := mlxfn.Parse(name, files["gpu/"+name+".mlxfn"])
			require.NoError(t, err)
			if name != "attention_added" { // of which MLX has no fused kernel
				require.ElementsMatch(t, primitives(ours), primitives(f))
			}
			// It takes the arguments of the other one, and is to have its results.
			both := map[string][]byte{name + ".mlxfn": data, name + ".safetensors": files["gpu/"+name+".safetensors"]}
			run(t, d, both, name, frontend.Options{})
		})
	}
}

// primitives are those of a file's function that are no matter of how a shape is written.
func primitives(f *mlxfn.File) (out []string) {
	for _, n := range f.Functions[0].Nodes {
		switch n.Name {
		case "Broadcast", "Reshape", "ExpandDims", "Squeeze", "Flatten", "Unflatten", "Arange", "AsType":
		default:
			out = append(out, n.Name)
		}
	}
	return out
}

// A decode step keeps its caches from run to run, in place, and so finds the tokens that MLX finds.
func TestDecoder(t *testing.T) {
	files := archive(t)
	d := cpu.New(0)
	defer d.Close()
	for _, name := range []string{"gpu/decoder", "gpu/decoder_f16", "cpu/decoder"} {
		t.Run(name, func(t *testing.T) {
			f, err := safetensors.Parse(name, files[name+".safetensors"])
			require.NoError(t, err)
			module, err := opened(t, files, name).Record(context.Background(), frontend.Options{})
			require.NoError(t, err)
			s, err := replay.Open(d, module, replay.Options{Poison: true})
			require.NoError(t, err)
			defer s.Close()
			graph := module.Graphs[0]
			states := 0
			for _, m := range graph.Memories {
				if m.Kind == ir.State {
					states++
				}
			}
			require.Equal(t, 4, states)
			g, err := s.Graph(context.Background(), graph.Name)
			require.NoError(t, err)
			for i := range 10 {
				filled(t, g, f, fmt.Sprintf("call%d.", i))
				_, err := g.Run(context.Background())
				require.NoError(t, err)
				for _, x := range f.Tensors {
					out, ok := strings.CutPrefix(x.Name, fmt.Sprintf("call%d.out", i))
					if !ok {
						continue
					}
					got, err := g.Output("out" + out)
					require.NoError(t, err)
					tolerance := 8 * tolerances[x.Type]
					if x.Type == ir.F16 {
						// MLX for CPUs adds up products in f16. How far that is off shows by the same step in f32.
						tolerance += off(f, x, fmt.Sprintf("call%d.wide", i))
					}
					compare(t, x.Name, x.Type, got, f.Data(x), tolerance)
				}
			}
		})
	}
}

// Whatever a file says of a function, it is recorded or refused.
func TestMutatedFunctions(t *testing.T) {
	files := archive(t)
	var seeds [][]byte
	for _, name := range cases(files) {
		if data := files[name+".mlxfn"]; len(data) < 8<<10 {
			seeds = append(seeds, data)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	recorded, refused := 0, 0
	for range 6000 {
		data := mutated(random, seeds[random.IntN(len(seeds))])
		m, err := mlxfn.Source.Open(&frontend.File{Name: "f", Read: func() ([]byte, error) { return data, nil }})
		if err != nil {
			continue
		}
		if _, err := m.Record(context.Background(), frontend.Options{}); err != nil {
			refused++
		} else {
			recorded++
		}
	}
	t.Logf("%d recorded, %d refused", recorded, refused)
	require.Positive(t, recorded)
	require.Positive(t, refused)
}

// All that cannot be recorded is named at once, with how often it is there.
func TestRefused(t *testing.T) {
	_, err := beside(t, "refused").Record(context.Background(), frontend.Options{})
	for _, want := range []string{"Hadamard: ", "--library", "FFT", "Convolution", "Scan", "(2 times", "Add: of i64", "Power: the exponent 1.3"} {
		require.ErrorContains(t, err, want)
	}
}

// Names of arguments, a choice of traces, states that are given, and weights.
func TestOptions(t *testing.T) {
	files := archive(t)
	ctx := context.Background()
	m := beside(t, "several")
	_, err := m.Record(ctx, frontend.Options{})
	require.ErrorContains(t, err, "it has several traces: choose one (--function N) of 1 (arg0 float32[3], arg1 float32[3]), 2 (arg0 float32[2 5], arg1 float32[2 5])")
	_, err = m.Record(ctx, frontend.Options{Traced: &frontend.Traced{Function: 3}})
	require.ErrorContains(t, err, "there is no function 3")
	module, err := m.Record(ctx, frontend.Options{Traced: &frontend.Traced{Function: 2}})
	require.NoError(t, err)
	require.Equal(t, []string{"input arg0 [2 5]", "input arg1 [2 5]", "output out0 [2 5]"}, memories(module.Graphs[0]))

	pair := func(in, out string) frontend.Options {
		return frontend.Options{Traced: &frontend.Traced{Function: 1, States: []frontend.StatePair{{In: in, Out: out}}}}
	}
	module, err = m.Record(ctx, pair("arg1", "out0"))
	require.NoError(t, err)
	require.Equal(t, []string{"input arg0 [3]", "state arg1 [3]"}, memories(module.Graphs[0]))
	_, err = m.Record(ctx, pair("arg2", "out0"))
	require.ErrorContains(t, err, "there is no argument arg2, but arg0, arg1")
	_, err = m.Record(ctx, pair("arg0", "out1"))
	require.ErrorContains(t, err, "there is no result out1, but out0")
	_, err = opened(t, files, "cpu/matmul").Record(ctx, frontend.Options{Traced: &frontend.Traced{States: []frontend.StatePair{{In: "arg0", Out: "out0"}}}})
	require.ErrorContains(t, err, "the argument is float32[5 24], the result float32[5 17]")

	keywords := opened(t, files, "cpu/keywords")
	path := filepath.Join(t.TempDir(), "w.safetensors")
	require.NoError(t, os.WriteFile(path, files["cpu/keywords.safetensors"], 0o644))
	module, err = keywords.Record(ctx, frontend.Options{Traced: &frontend.Traced{Weights: path}})
	require.NoError(t, err)
	require.Equal(t, []string{"input arg0 [2 16]", "weight bias [8]", "weight weight [8 16]", "output out0 [2 8]"}, memories(module.Graphs[0]))
	require.NoError(t, os.WriteFile(path, files["cpu/add.safetensors"], 0o644))
	_, err = keywords.Record(ctx, frontend.Options{Traced: &frontend.Traced{Weights: path}})
	require.ErrorContains(t, err, "none of its tensors is a keyword of the function")
	_, err = keywords.Record(ctx, frontend.Options{Context: 5})
	require.ErrorContains(t, err, "leave out --context")
}

// memories lists those of a graph that the host sees, and weights with names of arguments.
func memories(g *ir.Graph) (out []string) {
	for _, m := range g.Memories {
		if m.Kind != ir.Scratch && !strings.ContainsAny(m.Name, "_") {
			out = append(out, fmt.Sprintf("%s %s %v", m.Kind, m.Name, m.Shape))
		}
	}
	return out
}

// A state keeps what a run still needs of it.
func TestHeldStates(t *testing.T) {
	module, err := beside(t, "held").Record(context.Background(), frontend.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"state arg0 [4 3]", "input arg1 [1 3]", "input arg2 [1]", "output out1 [2 3]", "output out2 [4 3]"}, memories(module.Graphs[0]))
	d := cpu.New(0)
	defer d.Close()
	s, err := replay.Open(d, module, replay.Options{Poison: true})
	require.NoError(t, err)
	defer s.Close()
	g, err := s.Graph(context.Background(), module.Graphs[0].Name)
	require.NoError(t, err)
	want := make([]float32, 12)
	set := func(row int, v float32) {
		for i := range 3 {
			want[3*row+i] = v
		}
	}
	for at := range 3 {
		v := float32(at + 1)
		require.NoError(t, g.SetInput("arg1", record.Elements(ir.F32, []float32{v, v, v})))
		require.NoError(t, g.SetInput("arg2", []byte{byte(at), 0, 0, 0}))
		_, err := g.Run(context.Background())
		require.NoError(t, err)
		got, err := g.Output("out1")
		require.NoError(t, err)
		require.Equal(t, want[3:9], record.Numbers(ir.F32, got), "run %d: the rows before", at)
		set(at, v)
		got, err = g.Output("out2")
		require.NoError(t, err)
		require.Equal(t, want, record.Numbers(ir.F32, got), "run %d: between the updates", at)
		set(at+1, 2*v)
		got, err = g.State("arg0")
		require.NoError(t, err)
		require.Equal(t, want, record.Numbers(ir.F32, got), "run %d: the state", at)
	}
}

// A cache that is written in a place that memory says is changed where it lies: a step copies none of it.
func TestStatesInPlace(t *testing.T) {
	files := archive(t)
	for _, plain := range []bool{false, true} {
		module, err := opened(t, files, "gpu/decoder_f16").Record(context.Background(), frontend.Options{Traced: &frontend.Traced{NoStates: plain}})
		require.NoError(t, err)
		g := module.Graphs[0]
		count := map[string]int{}
		for _, n := range g.Nodes {
			if d, ok := n.(*ir.Dispatch); ok {
				count[d.Op]++
			}
		}
		require.Equal(t, 4, count["update_at"])
		states := 0
		for _, m := range g.Memories {
			if m.Kind == ir.State {
				states++
			}
		}
		if plain {
			require.Zero(t, states)
			continue
		}
		require.Equal(t, 4, states)
		require.Zero(t, count["copy"], "the logits and the token are made where they are wanted")
	}
}
