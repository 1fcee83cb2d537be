package trace_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/replay"
)

// The captures of testdata/mlxhost are of programs on MLX's own host code (testdata/gen/mlxhost/programs.cpp), which ran on the stand-in for
// Metal with MLX's compiled kernels. They lack the code of these, which tests fetch, and have what the programs computed.

const folder = "../../testdata/mlxhost/"

func unpacked(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(folder + name)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(z)
	require.NoError(t, err)
	return data
}

// Of a library and a pipeline in a log.
const (
	library = 2
	named   = 3
	waited  = 14
)

// records calls do with the code and payload of each record of a log, and the offset of its end.
func records(data []byte, do func(code uint32, payload []byte, end int)) {
	for at := 16; at < len(data); {
		size := int(binary.LittleEndian.Uint32(data[at:]))
		end := at + 8 + (size+7)&^7
		do(binary.LittleEndian.Uint32(data[at+4:]), data[at+8:at+8+size], end)
		at = end
	}
}

// texts returns the fields of a payload that begins with n numbers.
func texts(payload []byte, n int) (out [][]byte) {
	for payload = payload[8*n:]; len(payload) > 0; {
		size := binary.LittleEndian.Uint32(payload)
		out = append(out, payload[4:4+size])
		payload = payload[4+size:]
	}
	return out
}

// kernelsOf returns the functions of the compiled library that a log uses.
func kernelsOf(data []byte) (names []string) {
	var compiled uint64
	records(data, func(code uint32, p []byte, _ int) {
		switch code {
		case library:
			if string(texts(p, 1)[0]) == "metallib" {
				compiled = binary.LittleEndian.Uint64(p)
			}
		case named:
			if binary.LittleEndian.Uint64(p[8:]) == compiled {
				names = append(names, string(texts(p, 2)[0]))
			}
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// complete returns a log with the code of a compiled library in place.
func complete(data, code []byte) []byte {
	out := bytes.Clone(data[:16])
	records(data, func(kind uint32, p []byte, _ int) {
		if kind == library {
			fields := texts(p, 1)
			if string(fields[0]) == "metallib" {
				fields[2] = code
			}
			p = bytes.Clone(p[:8])
			for _, f := range fields {
				p = append(binary.LittleEndian.AppendUint32(p, uint32(len(f))), f...)
			}
		}
		out = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(out, uint32(len(p))), kind)
		out = append(append(out, p...), make([]byte, -len(p)&7)...)
	})
	return out
}

// decoders returns the logs of captures, with the kernels that they use. What these touch is registered.
func decoders(t *testing.T, names ...string) (logs [][]byte) {
	t.Helper()
	code := metallibs.Small(t, kernelsOf(unpacked(t, "copies.mlxtrace.gz"))...)
	registering.Do(func() {
		text, err := os.ReadFile(folder + "decode.effects")
		require.NoError(t, err)
		effects := regexp.MustCompile(`(@library metallib .* sha256 )[0-9a-f]+`).ReplaceAllString(string(text), fmt.Sprintf("${1}%x", sha256.Sum256(code)))
		require.NoError(t, msl.Register("decode.effects", effects))
	})
	for _, name := range names {
		logs = append(logs, complete(unpacked(t, name+".mlxtrace.gz"), code))
	}
	return logs
}

var registering sync.Once

// written reads what a program has written, by its names.
func written(t *testing.T, data []byte) map[string][][]byte {
	t.Helper()
	out := map[string][][]byte{}
	for len(data) > 0 {
		var parts [2][]byte
		for i := range parts {
			n := binary.LittleEndian.Uint32(data)
			parts[i], data = data[4:4+n], data[4+n:]
		}
		out[string(parts[0])] = append(out[string(parts[0])], parts[1])
	}
	return out
}

// importedWith imports a log, and writes the libraries to a folder of the test.
func importedWith(t *testing.T, data []byte, o trace.Options) *trace.Result {
	t.Helper()
	l, err := trace.Read("log", data)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	o.Folder = t.TempDir()
	r, err := trace.Import(t.Context(), l, o)
	require.NoError(t, err)
	for _, f := range r.Files {
		require.NoError(t, os.WriteFile(filepath.Join(o.Folder, filepath.Base(f.Path)), f.Data, 0o600))
	}
	return r
}

// mlxGraph imports a log that becomes one graph.
func mlxGraph(t *testing.T, data []byte, o trace.Options) (*ir.Graph, []string) {
	t.Helper()
	r := importedWith(t, data, o)
	require.Len(t, r.Module.Graphs, 1)
	return r.Module.Graphs[0], r.Remarks
}

// tokens replays a graph for the first steps, each of which finds what the one before it has left, and calls see with what it put out.
func tokens(t *testing.T, d *softmetal.Device, g *ir.Graph, steps int, see func(step int, logits, token []byte)) {
	t.Helper()
	i, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
	require.NoError(t, err)
	defer i.Close()
	p, err := i.Graph(t.Context(), g.Name)
	require.NoError(t, err)
	for pos := range steps {
		require.NoError(t, p.SetParam("pos", float64(pos)))
		_, err := p.Run(t.Context())
		require.NoError(t, err)
		out := map[int64][]byte{}
		for m := range g.Memories {
			if m := &g.Memories[m]; m.Kind == ir.Output {
				out[m.Size], err = p.Output(m.Name)
				require.NoError(t, err)
			}
		}
		require.Len(t, out, 2)
		see(pos, out[512], out[4])
	}
}

// beginning returns the log of the first two steps, each of which waits twice.
func beginning(data []byte) []byte {
	waits, end := 0, 0
	records(data, func(code uint32, _ []byte, at int) {
		if code == waited {
			if waits++; waits == 4 {
				end = at
			}
		}
	})
	return data[:end]
}

// logits is the memory of the decoder's logits, which the program reads though argmax does so last.
func logits(t *testing.T, data []byte, o trace.Options) string {
	t.Helper()
	g, _ := mlxGraph(t, beginning(data), o)
	for i := range g.Nodes {
		if d, ok := g.Nodes[i].(*ir.Dispatch); ok && strings.HasPrefix(g.Kernels[d.Kernel].Function, "argmax") {
			return g.Memories[d.Bindings[0].View.Mem].Name
		}
	}
	t.Fatal("no argmax")
	return ""
}

// A decoder on MLX's own host code is one graph, with the position of the token as $pos: two captured steps make it, the third to the
// 200th agree. With MLX's own compiled kernels it computes what the program did, to the byte, as recorded and optimized with proof.
func TestMLXDecoder(t *testing.T) {
	sample.Seldom(t)
	type capture struct {
		name                       string
		steps, states              int // the token, and keys and values of each layer
		dispatches, barriers, left int
	}
	for _, c := range sample.Of(t, "captures", []capture{
		{"decode", 200, 5, 45, 34, 34},
		{"copies", 16, 5, 49, 36, 34}, // the caches of keys and values are in other buffers in each step
		// Six layers, in steps of several command buffers: which memory MLX takes again within a step depends on when the GPU is done with it.
		{"deep", 16, 13, 121, 90, 90},
	}, 3) {
		t.Run(c.name, func(t *testing.T) {
			data := decoders(t, c.name)[0]
			o := trace.Options{Outputs: []string{}}
			o.Outputs = []string{logits(t, data, o)}
			g, remarks := mlxGraph(t, data, o)
			require.Equal(t, []string{fmt.Sprintf("graph step: $pos was 0 to %d in %d runs, and may be 0 to 511", c.steps-1, c.steps),
				"graph step: with $pos greater than 255 a kernel would touch what lies behind a buffer"}, remarks)
			two, _ := mlxGraph(t, beginning(data), o)
			text := func(g *ir.Graph) string {
				return regexp.MustCompile(`"/[^"]*"`).ReplaceAllString(mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}), "")
			}
			require.Equal(t, text(two), text(g))

			states := 0
			for i := range g.Memories {
				if g.Memories[i].Kind == ir.State {
					states++
				}
				require.NotEqual(t, ir.Input, g.Memories[i].Kind)
			}
			require.Equal(t, c.states, states)
			require.Equal(t, c.dispatches, g.Stats().Dispatches)
			r, err := optimize.Run(t.Context(), g, optimize.Options{Pipeline: passes.DefaultPipeline(), Proof: prove.Options{Sources: []string{"decode.effects"}}})
			require.NoError(t, err)
			require.Equal(t, prove.Proved, r.Proof.Verdict)
			require.Equal(t, c.dispatches, r.After.Dispatches)
			require.Equal(t, c.barriers, r.Before.Barriers)
			require.Equal(t, c.left, r.After.Barriers)

			want := written(t, unpacked(t, c.name+".outputs.gz"))
			d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1})
			require.NoError(t, err)
			defer d.Close()
			for i, g := range []*ir.Graph{g, r.Optimized} {
				steps := c.steps
				if i == 0 && !sample.Whole() {
					steps = 3
				}
				tokens(t, d, g, steps, func(step int, logits, token []byte) {
					require.True(t, bytes.Equal(want["logits"][step], logits), "logits of step %d", step)
					require.True(t, bytes.Equal(want["token"][step], token), "token of step %d", step)
				})
			}
		})
	}
}

// With kernels of the builtin library by their names the same graph is fused, and its proof covers what they compute. Sums of these kernels
// have another order than MLX's compiled ones have, or a rounding more: so both are compared with the program in numbers.
func TestMLXDecoderFused(t *testing.T) {
	sample.Seldom(t)
	data := decoders(t, "decode")[0]
	o := trace.Options{Builtin: true}
	o.Outputs = []string{logits(t, data, o)}
	g, remarks := mlxGraph(t, data, o)
	require.Len(t, remarks, 3)
	require.Contains(t, remarks[2], "12 kernels are those of the builtin library")
	r, err := optimize.Run(t.Context(), g, optimize.Options{Pipeline: passes.DefaultPipeline(), Proof: prove.Options{Sources: []string{"decode.effects"}}})
	require.NoError(t, err)
	require.Equal(t, prove.Proved, r.Proof.Verdict)
	require.Equal(t, 45, r.Before.Dispatches)
	require.Equal(t, 33, r.After.Dispatches)
	require.Equal(t, 34, r.Before.Barriers)
	require.Equal(t, 24, r.After.Barriers)
	want := written(t, unpacked(t, "decode.outputs.gz"))
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	var recorded [][]byte
	const steps = 8
	tokens(t, d, g, steps, func(step int, logits, token []byte) {
		recorded = append(recorded, logits, token)
		require.Equal(t, want["token"][step], token)
	})
	tokens(t, d, r.Optimized, steps, func(step int, logits, token []byte) {
		require.Equal(t, recorded[2*step], logits)
		require.Equal(t, recorded[2*step+1], token)
		for i := 0; i < len(logits); i += 2 {
			a, b := binary.LittleEndian.Uint16(logits[i:]), binary.LittleEndian.Uint16(want["logits"][step][i:])
			require.InDelta(t, term.F16Value(b), term.F16Value(a), 0.01)
		}
	})
}

// A program that gives the GPU a step before it waits for the one before: the first three tokens are two graphs of their own, as the program
// waits for the first one behind the third and the caches are written in place at first, and what they leave the graph of the others finds.
func TestMLXDecoderAhead(t *testing.T) {
	sample.Seldom(t)
	data := decoders(t, "ahead")[0]
	r := importedWith(t, data, trace.Options{})
	require.Len(t, r.Module.Graphs, 3)
	require.Equal(t, "graph step3: $pos was 3 to 23 in 21 runs, and may be 0 to 511", r.Remarks[0])
	want := written(t, unpacked(t, "ahead.outputs.gz"))
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	s, err := replay.Open(d, r.Module, replay.Options{})
	require.NoError(t, err)
	defer s.Close()
	for _, g := range r.Module.Graphs {
		p, err := s.Graph(t.Context(), g.Name)
		require.NoError(t, err)
		if g.Name != "step3" {
			_, err := p.Run(t.Context())
			require.NoError(t, err)
			continue
		}
		for pos := 3; pos < len(want["token"]); pos++ {
			require.NoError(t, p.SetParam("pos", float64(pos)))
			_, err := p.Run(t.Context())
			require.NoError(t, err)
			for i := range g.Memories {
				if g.Memories[i].Kind == ir.Output {
					got, err := p.Output(g.Memories[i].Name)
					require.NoError(t, err)
					require.Equal(t, want["token"][pos], got, "token %d", pos)
				}
			}
		}
	}
}

// Single operations: each is a graph of its own, and computes what the program did.
func TestMLXOperations(t *testing.T) {
	data := unpacked(t, "operations.mlxtrace.gz")
	data = complete(data, metallibs.Small(t, kernelsOf(data)...))
	r := importedWith(t, data, trace.Options{})
	want := written(t, unpacked(t, "operations.outputs.gz"))
	names := []string{"add", "scaled", "exp", "norm", "softmax", "product", "argmax", "sum", "rows"}
	require.Len(t, r.Module.Graphs, len(names))
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	s, err := replay.Open(d, r.Module, replay.Options{})
	require.NoError(t, err)
	defer s.Close()
	for i, name := range names {
		g := r.Module.Graphs[i]
		p, err := s.Graph(t.Context(), g.Name)
		require.NoError(t, err)
		_, err = p.Run(t.Context())
		require.NoError(t, err)
		last := g.Nodes[len(g.Nodes)-1].(*ir.Dispatch) // what it writes is a state, since nobody has said what kernels touch
		found := false
		for j := range last.Bindings {
			if x := &last.Bindings[j]; x.Kind == ir.BindView && g.Memories[x.View.Mem].Kind == ir.State && writable(g, last, x) {
				got, err := p.State(g.Memories[x.View.Mem].Name)
				require.NoError(t, err)
				require.Equal(t, want[name][0], got[:len(want[name][0])], name)
				found = true
			}
		}
		require.True(t, found, name)
	}
}

func writable(g *ir.Graph, d *ir.Dispatch, x *ir.Binding) bool {
	a, ok := g.Kernels[d.Kernel].Arg(x.Slot)
	return ok && a.Access != ir.ReadArg
}

// flattened returns a header of MLX's kernels with all that it includes, but Metal's own, in one text. seen are those that are there.
func flattened(t *testing.T, name string, seen map[string]bool) string {
	t.Helper()
	if seen[name] {
		return ""
	}
	seen[name] = true
	data, err := os.ReadFile(filepath.Join(metallibs.Headers(t), name))
	require.NoError(t, err)
	text := strings.ReplaceAll(string(data), "#pragma once", "")
	return regexp.MustCompile(`(?m)^#include "(.*)"$`).ReplaceAllStringFunc(text, func(line string) string {
		return flattened(t, strings.Split(line, `"`)[1], seen)
	})
}

// withSource returns a log in which the kernel of a pipeline comes from a source, in place of the compiled library that has it.
func withSource(data []byte, kernel, source string) []byte {
	const number = 1 << 40
	var added []byte
	for _, field := range []string{"source", "program.metal", source, ""} {
		added = append(binary.LittleEndian.AppendUint32(added, uint32(len(field))), field...)
	}
	added = append(binary.LittleEndian.AppendUint64(nil, number), added...)
	out := bytes.Clone(data[:16])
	put := func(kind uint32, p []byte) {
		out = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(out, uint32(len(p))), kind)
		out = append(append(out, p...), make([]byte, -len(p)&7)...)
	}
	records(data, func(kind uint32, p []byte, _ int) {
		if kind == named && string(texts(p, 2)[0]) == kernel {
			put(library, added)
			p = bytes.Clone(p)
			binary.LittleEndian.PutUint64(p[8:], number)
		}
		put(kind, p)
	})
	return out
}

// A barrier that is missing in MLX's source of attention is found by the capture of a decoder on MLX's own host code, and nothing is where
// it is there: the simdgroups exchange what they have added up through one array of threadgroup memory, piece by piece.
func TestPlantedRaceInMLX(t *testing.T) {
	sample.Seldom(t)
	const kernel, barrier, next = "sdpa_vector_float16_t_64_64", "    threadgroup_barrier(mem_flags::mem_threadgroup);\n", "    outputs[simd_lid * BD + simd_gid] = o[i];"
	seen := map[string]bool{}
	source := "#include <metal_stdlib>\n" + flattened(t, "mlx/backend/metal/kernels/utils.h", seen) + flattened(t, "mlx/backend/metal/kernels/sdpa_vector.h", seen) +
		`template [[host_name("` + kernel + `")]] [[kernel]] decltype(sdpa_vector<float16_t, 64>) sdpa_vector<float16_t, 64>;` + "\n"
	before, behind, ok := strings.Cut(source, "    o[i] = sum_exp_score == 0 ? o[i] : (o[i] / sum_exp_score);\n"+barrier)
	require.True(t, ok)
	planted := before + behind // the next piece is written while others still read the one before
	line := 1 + strings.Count(planted[:strings.Index(planted, next)], "\n")
	for _, text := range []string{source, planted} {
		r := importedWith(t, withSource(beginning(decoders(t, "decode")[0]), kernel, text), trace.Options{})
		require.Len(t, r.Module.Graphs, 1)
		d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1, Check: true})
		require.NoError(t, err)
		defer d.Close()
		i, err := replay.Open(d, r.Module, replay.Options{})
		require.NoError(t, err)
		defer i.Close()
		p, err := i.Graph(t.Context(), r.Module.Graphs[0].Name)
		require.NoError(t, err)
		require.NoError(t, p.SetParam("pos", 1))
		_, err = p.Run(t.Context())
		require.NoError(t, err)
		found := map[string]int{}
		for _, o := range d.Observed() {
			for i := range o.Findings {
				f := &o.Findings[i]
				require.Equal(t, softmetal.WriteAfterRead, f.Kind)
				require.Contains(t, f.String(), fmt.Sprintf("line %d", line))
				found[f.Kernel]++
			}
		}
		if text == source {
			require.Empty(t, found)
		} else {
			require.Equal(t, map[string]int{kernel: found[kernel]}, found)
			require.Positive(t, found[kernel])
		}
	}
}
