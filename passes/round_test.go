package passes_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/replay"
)

// halves computes y = (a·b + c)·d in f16, in three dispatches.
const halves = `mlxt 1

graph halves {
  memory %a input 2048 f16[1024]
  memory %b input 2048 f16[1024]
  memory %c input 2048 f16[1024]
  memory %d input 2048 f16[1024]
  memory %y output 2048 f16[1024]
  memory %t scratch 2048 f16[1024]
  memory %u scratch 2048 f16[1024]
  kernel @mul builtin "vv_Multiplyfloat16" args(0 a: device f16 read, 1 b: device f16 read, 2 c: device f16 write)
  kernel @add builtin "vv_Addfloat16" args(0 a: device f16 read, 1 b: device f16 read, 2 c: device f16 write)

  #0 @mul (a = %a[0:2048], b = %b[0:2048], c = %t[0:2048]) grid threads [1024, 1, 1] of [256, 1, 1]
  barrier
  #1 @add (a = %t[0:2048], b = %c[0:2048], c = %u[0:2048]) grid threads [1024, 1, 1] of [256, 1, 1]
  barrier
  #2 @mul (a = %u[0:2048], b = %d[0:2048], c = %y[0:2048]) grid threads [1024, 1, 1] of [256, 1, 1]
}
`

func halfGraph(t require.TestingT) *ir.Graph {
	m, err := mlxt.Parse(context.Background(), "test", []byte(halves))
	require.NoError(t, err)
	require.NoError(t, m.Check())
	return m.Graphs[0]
}

// optimizedHalves runs a pipeline and proves its result.
func optimizedHalves(t *testing.T, pipeline string, allow ...string) (*ir.Graph, []*passes.Report, *prove.Result) {
	p, err := passes.ParsePipeline(pipeline)
	require.NoError(t, err)
	g := halfGraph(t)
	reports, err := passes.Run(context.Background(), g, p, passes.Options{Allow: allow})
	require.NoError(t, err)
	return g, reports, prove.Check(context.Background(), halfGraph(t), g, prove.Options{Allow: []string{term.Unrounded}})
}

func onlyFunction(t *testing.T, g *ir.Graph) string {
	var functions []string
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			functions = append(functions, g.Kernels[d.Kernel].Function)
		}
	}
	require.Len(t, functions, 1)
	return functions[0]
}

// If the rewrite is not allowed, the chain is fused with its roundings, to the bit. If it is
// allowed, the chain is fused without the roundings of intermediates, and the proof says so. The
// rounding of the result stays.
func TestFuseRounds(t *testing.T) {
	const exact = "out0[i] = round(f16, round(f16, round(f16, in0_f16[i] * in1_f16[i]) + in2_f16[i]) * in3_f16[i])"
	const unrounded = "out0[i] = round(f16, (in0_f16[i] * in1_f16[i] + in2_f16[i]) * in3_f16[i])"
	for _, c := range []struct {
		pipeline string
		allow    []string
		want     string
		dropped  int
	}{
		{"annotate,fuse,dce,barriers", nil, exact, 0},
		{"annotate,fuse{allow=none},dce,barriers", []string{"round"}, exact, 0}, // the pass's own option wins
		{"annotate,fuse{allow=round},dce,barriers", nil, unrounded, 2},
		{"annotate,fuse,dce,barriers", []string{"round"}, unrounded, 2},
		{"", []string{"round"}, unrounded, 2},
	} {
		g, reports, proof := optimizedHalves(t, c.pipeline, c.allow...)
		require.Equal(t, c.want, onlyFunction(t, g), c.pipeline)
		require.Equal(t, prove.Proved, proof.Verdict, "%s", proof)
		remarks := fmt.Sprint(reports[1].Remarks)
		if c.dropped == 0 {
			require.Empty(t, proof.Rewrites)
			require.NotContains(t, remarks, "rewrite round")
			continue
		}
		require.Len(t, proof.Rewrites, 1)
		require.Equal(t, c.dropped, proof.Rewrites[0].Count)
		require.Contains(t, remarks, "rewrite round")
		require.Equal(t, prove.Refused, prove.Check(context.Background(), halfGraph(t), g, prove.Options{}).Verdict, "not allowed to the proof")
	}
	p, err := passes.ParsePipeline("annotate,fuse{allow=round+fma}")
	require.NoError(t, err)
	_, err = passes.Run(context.Background(), halfGraph(t), p, passes.Options{})
	require.ErrorContains(t, err, `allow=round+fma: there is no rewrite "fma" (there are round)`)
}

// replayHalves runs g over f16 inputs and returns the bits of an output, in
// halves.
func replayHalves(t require.TestingT, g *ir.Graph, inputs map[string][]uint16, output string) []uint16 {
	device := cpu.New(1)
	defer func() { require.NoError(t, device.Close()) }()
	s, err := replay.Open(device, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{Poison: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	p, err := s.Graph(context.Background(), g.Name)
	require.NoError(t, err)
	for name, v := range inputs {
		require.NoError(t, p.SetInput(name, ir.ValueBytes(v)))
	}
	_, err = p.Run(context.Background())
	require.NoError(t, err)
	data, err := p.Output(output)
	require.NoError(t, err)
	out := make([]uint16, len(data)/2)
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(data[2*i:])
	}
	return out
}

// The fused dispatch computes values within the bound of rewrite round around the recorded ones,
// also among subnormals. If an intermediate overflowed in f16, the fused value may be finite.
func TestUnroundedIsWithinItsBound(t *testing.T) {
	recorded := halfGraph(t)
	exact, _, _ := optimizedHalves(t, "annotate,fuse,dce,barriers")
	unrounded, _, _ := optimizedHalves(t, "annotate,fuse{allow=round},dce,barriers")
	half := func(v float64) float64 { return max(math.Abs(v)/(1<<11), math.Ldexp(1, -25)) }
	single := func(v float64) float64 { return math.Abs(v)/(1<<24) + math.Ldexp(1, -150) }
	compared, moved, subnormal, overflowed, rescued := 0, 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		exponents := rapid.SampledFrom([]int{31, 18, 12, 24}).Draw(t, "exponents below") // all, moderate, down to subnormals, up to overflow
		inputs := map[string][]uint16{}
		for _, name := range strings.Fields("a b c d") {
			v := make([]uint16, 1024)
			for i := range v {
				v[i] = uint16(r.IntN(2)<<15 | r.IntN(exponents)<<10 | r.IntN(1024))
			}
			inputs[name] = v
		}
		y := replayHalves(t, recorded, inputs, "y")
		got := replayHalves(t, exact, inputs, "y")
		z := replayHalves(t, unrounded, inputs, "y")
		for i := range y {
			a, b, c, d := term.F16Value(inputs["a"][i]), term.F16Value(inputs["b"][i]), term.F16Value(inputs["c"][i]), term.F16Value(inputs["d"][i])
			want, have := term.F16Value(y[i]), term.F16Value(z[i])
			if math.IsNaN(want) {
				require.True(t, math.IsNaN(term.F16Value(got[i])))
			} else {
				require.Equal(t, y[i], got[i], "element %d: with its roundings the fused dispatch has the same bits", i)
			}
			// How far the two intermediates, and then the results, lie apart.
			product := a * b
			apartT := half(product) + 2*single(product)
			sum := product + c
			apartU := apartT + half(math.Abs(sum)+apartT) + 2*single(math.Abs(sum)+apartT)
			result := (math.Abs(sum) + apartU) * math.Abs(d)
			if max(math.Abs(product), math.Abs(sum)+apartU, result) >= 65000 {
				overflowed++
				if math.IsInf(want, 0) && !math.IsInf(have, 0) && !math.IsNaN(have) {
					rescued++
				}
				continue
			}
			bound := apartU*math.Abs(d) + 2*half(result) + 2*single(result)
			require.LessOrEqual(t, math.Abs(want-have), bound, "element %d: (%g·%g + %g)·%g", i, a, b, c, d)
			compared++
			if y[i] != z[i] {
				moved++
			}
			if want != 0 && math.Abs(want) < math.Ldexp(1, -14) {
				subnormal++
			}
		}
	})
	t.Logf("%d results within the bound, %d of them moved, %d subnormal; %d overflow, of which %d are finite without roundings", compared, moved, subnormal, overflowed, rescued)
	for name, n := range map[string]int{"compared": compared, "moved": moved, "subnormal": subnormal, "rescued": rescued} {
		require.Positive(t, n, name)
	}
}

// halfChain draws a graph of f16 commands, each with a memory of its own, which
// read each other's results; some compare what they read.
func halfChain(t *rapid.T) *ir.Graph {
	text := "mlxt 1\n\ngraph g {\n  memory %v0 input 128 f16[64]\n  memory %v1 input 128 f16[64]\n  memory %one weight 4 f16[2] = fill 0x3c003c00\n"
	kernels := `  kernel @mul builtin "vv_Multiplyfloat16" args(0 a: device f16 read, 1 b: device f16 read, 2 c: device f16 write)
  kernel @add builtin "vv_Addfloat16" args(0 a: device f16 read, 1 b: device f16 read, 2 c: device f16 write)
  kernel @copy builtin "v_copyfloat16float16" args(0 src: device f16 read, 1 dst: device f16 write)
  kernel @rms builtin "rmsfloat16" args(0 x: device f16 read, 1 w: device f16 read, 2 out: device f16 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)
  kernel @sign generated "out0[i] = round(f16, select(in0_f16[i] < 0.0, in0_f16[i], exp(in0_f16[i])))" args(0 in0_f16: device f16 read, 1 out0: device f16 write)
  kernel @floor generated "out0[i] = round(f16, max(in0_f16[i], 0.1))" args(0 in0_f16: device f16 read, 1 out0: device f16 write)
  kernel @wide generated "out0[i] = round(f32, in0_f16[i] * 3.0)" args(0 in0_f16: device f16 read, 1 out0: device f32 write)
  kernel @thin generated "out0[i] = round(f16, in0[i] + 1.0)" args(0 in0: device f32 read, 1 out0: device f16 write)

`
	commands := rapid.IntRange(2, 9).Draw(t, "commands")
	nodes, half, single := "", []int{0, 1}, []int{}
	for k := 2; k < commands+2; k++ {
		source := func(of []int) int {
			if n := len(of); rapid.Bool().Draw(t, "the last") {
				return of[n-1]
			}
			return rapid.SampledFrom(of).Draw(t, "source")
		}
		kind, typ, size, grid := "scratch", "f16", 128, " grid threads [64, 1, 1] of [64, 1, 1]\n"
		if k >= commands {
			kind = "output"
		}
		command := ""
		switch op := rapid.SampledFrom(strings.Fields("mul mul mul add add copy rms sign floor wide thin")).Draw(t, "command"); op {
		case "mul", "add":
			command = fmt.Sprintf("@%s (a = %%v%d[0:128], b = %%v%d[0:128], c = %%v%d[0:128])", op, source(half), source(half), k)
		case "copy":
			command = fmt.Sprintf("@copy (src = %%v%d[0:128], dst = %%v%d[0:128])", source(half), k)
		case "rms":
			grid = " grid threadgroups [1, 1, 1] of [32, 1, 1]\n"
			command = fmt.Sprintf("@rms (x = %%v%d[0:128], w = %%one[0:2], out = %%v%d[0:128], eps = 1e-05, axis_size = 64, w_stride = 0)", source(half), k)
		case "wide":
			typ, size = "f32", 256
			command = fmt.Sprintf("@wide (in0_f16 = %%v%d[0:128], out0 = %%v%d[0:256])", source(half), k)
		case "thin":
			if len(single) == 0 {
				op = "floor"
				command = fmt.Sprintf("@floor (in0_f16 = %%v%d[0:128], out0 = %%v%d[0:128])", source(half), k)
				break
			}
			command = fmt.Sprintf("@thin (in0 = %%v%d[0:256], out0 = %%v%d[0:128])", source(single), k)
		default:
			command = fmt.Sprintf("@%s (in0_f16 = %%v%d[0:128], out0 = %%v%d[0:128])", op, source(half), k)
		}
		if typ == "f16" {
			half = append(half, k)
		} else {
			single = append(single, k)
		}
		text += fmt.Sprintf("  memory %%v%d %s %d %s[64]\n", k, kind, size, typ)
		nodes += fmt.Sprintf("  #%d %s%s  barrier\n", k, command, grid)
	}
	m, err := mlxt.Parse(context.Background(), "test", []byte(text+kernels+nodes+"}\n"))
	require.NoError(t, err, text+kernels+nodes)
	require.NoError(t, m.Check())
	return m.Graphs[0]
}

// isNaN reports whether half i of an output is one of a NaN.
func isNaN(t ir.DType, halves []uint16, i int) bool {
	if t == ir.F16 {
		return halves[i]&0x7fff > 0x7c00
	}
	return math.IsNaN(float64(math.Float32frombits(uint32(halves[i|1])<<16 | uint32(halves[i&^1]))))
}

// What fuse makes of half precision is proved: to the bit, or by rewrite round if that is allowed.
// Roundings are left out only in the latter case. A result that is proved to the bit has the bits
// of the recording on the CPU.
func TestFusedHalvesAreProved(t *testing.T) {
	fused, unrounded, refused, small := 0, 0, 0, 100 // at least small graphs are tried
	rapid.Check(t, func(t *rapid.T) {
		g := halfChain(t)
		for _, allow := range [][]string{nil, {term.Unrounded}} {
			after := g.Clone()
			_, err := passes.Run(context.Background(), after, passes.DefaultPipeline(), passes.Options{Allow: allow})
			require.NoError(t, err)
			text := mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}) + mlxt.Format(&ir.Module{Graphs: []*ir.Graph{after}})
			r := prove.Check(context.Background(), g, after, prove.Options{Allow: allow})
			require.Equal(t, prove.Proved, r.Verdict, "%v: %s\n%s", allow, r, text)
			if r.Fused > 0 {
				fused++
			}
			exact := len(r.Rewrites) == 0
			if !exact {
				unrounded++
				// If the rewrite is not allowed, the proof refuses, unless only values that nobody
				// sees have lost a rounding.
				without := prove.Check(context.Background(), g, after, prove.Options{})
				exact = without.Verdict == prove.Proved
				if !exact {
					refused++
					require.Equal(t, prove.Refused, without.Verdict)
				}
			}
			if exact && r.Fused > 0 && (small > 0 || len(r.Rewrites) > 0) {
				small--
				inputs := map[string][]uint16{}
				for _, name := range []string{"v0", "v1"} {
					v := make([]uint16, 64)
					for i := range v {
						v[i] = uint16(i*2027+len(text)*977) &^ 0x4000 // below 2
					}
					inputs[name] = v
				}
				for _, m := range g.Memories {
					if m.Kind == ir.Output {
						want, got := replayHalves(t, g, inputs, m.Name), replayHalves(t, after, inputs, m.Name)
						for i := range want {
							if !isNaN(m.DType, want, i) || !isNaN(m.DType, got, i) { // any NaN is as good as another
								require.Equal(t, want[i], got[i], "half %d of %s\n%s", i, m.Name, text)
							}
						}
					}
				}
			}
		}
	})
	t.Logf("%d graphs with fused commands, %d with roundings left out", fused, unrounded)
	require.Positive(t, unrounded)
	require.Positive(t, refused)
}
