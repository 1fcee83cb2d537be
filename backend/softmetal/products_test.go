package softmetal_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/replay"
)

// productGraph builds the text of a graph of dispatches line by line. An operand is a view that begins some bytes
// behind the beginning of its memory.
type productGraph struct {
	memories, kernels, dispatches strings.Builder
	known                         map[string]bool
}

func (p *productGraph) memory(kind, name string, bytes int) string {
	const behind = 4
	if !p.known[name] {
		p.known[name] = true
		fmt.Fprintf(&p.memories, "  memory %%%s %s %d u8[%d]\n", name, kind, behind+bytes, behind+bytes)
	}
	return fmt.Sprintf("%%%s[%d:%d]", name, behind, behind+bytes)
}

// at moves an operand to the beginning of its memory, which is a multiple of 16 bytes.
func at(operand string, bytes int) string {
	return operand[:strings.IndexByte(operand, '[')] + fmt.Sprintf("[0:%d]", bytes)
}

// A product by a kernel that also normalises x, or adds the residual, has the bits of the separate dispatches that it
// replaces: whether it keeps x or reads it again, with rows that not all lanes have a part of, with one row for a
// simdgroup or more, and for all alignments.
func TestProducts(t *testing.T) {
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 2})
	require.NoError(t, err)
	defer d.Close()
	type product struct {
		kernel  string // without its ending
		k, n, b int
	}
	all := []product{
		{"affine_qmv_rms", 576, 37, 8},
		{"affine_qmv_rms", 672, 33, 8},
		{"affine_qmv_fast_rms", 1280, 40, 8},
		{"affine_qmv_rms_silu_mul", 32, 9, 4},
		{"affine_qmv_rms_silu_mul", 1024, 9, 4},
		{"affine_qmv_rms_silu_mul", 1056, 19, 4},
		{"affine_qmv_fast_rms_silu_mul", 512, 8, 4},
		{"affine_qmv_fast_rms_silu_mul", 1536, 8, 4},
		{"affine_qmv_add", 576, 11, 4},
		{"affine_qmv_add", 1056, 8, 8},
		{"affine_qmv_fast_add", 1536, 16, 4},
		{"affine_qmv_fast_add", 2560, 8, 4},
		{"affine_qmv_add", 96, 4101, 4},
		{"affine_qmv_fast_add", 512 * 9, 16, 4},
		{"affine_qmv_fast_add", 512 * 13, 8, 4},
		{"affine_qmv_fast_add", 512 * 7, 4104, 4},
		{"affine_qmv_add", 256*9 + 32, 8, 4},
	}
	// A run takes some of the kernels, with all their shapes, for compiling one costs more than to run it.
	var kernels []string
	of := func(c product) string { return fmt.Sprint(c.kernel, c.b) }
	for _, c := range all {
		if !slices.Contains(kernels, of(c)) {
			kernels = append(kernels, of(c))
		}
	}
	kernels = sample.Turns(t, t.Name(), kernels)
	for _, c := range all {
		if !slices.Contains(kernels, of(c)) {
			continue
		}
		t.Run(fmt.Sprintf("%s/%d/%d", c.kernel, c.k, c.n), func(t *testing.T) {
			const rows = 2
			ending := fmt.Sprintf("_float_gs_32_b_%d", c.b)
			plain := "affine_qmv" + ending + "_batch_0_pr_0_hgs_0_r_4"
			if strings.Contains(c.kernel, "_fast") {
				plain = "affine_qmv_fast" + ending + "_batch_0_pr_0_hgs_0_r_4"
			}
			p := productGraph{known: map[string]bool{}}
			argument := func(name string) string {
				if strings.HasSuffix(c.kernel, "silu_mul") && name != "x" && name != "norm" && !strings.HasSuffix(name, "_up") {
					return name + "_gate"
				}
				return name
			}
			read := func(names ...string) string {
				var out []string
				for i, name := range names {
					out = append(out, fmt.Sprintf("%d %s: device %s read", i, argument(name), map[bool]string{true: "u32", false: "f32"}[name[0] == 'w']))
				}
				return strings.Join(out, ", ")
			}
			fmt.Fprintf(&p.kernels, "  kernel @qmv builtin %q args(0 w: device u32 read, 1 scales: device f32 read, 2 biases: device f32 read, 3 x: device f32 read, 4 y: device f32 write, 5 in_vec_size: constant i32, 6 out_vec_size: constant i32)\n", plain)
			fmt.Fprintln(&p.kernels, `  kernel @rms builtin "rmsfloat32" args(0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)`)
			fmt.Fprintln(&p.kernels, `  kernel @silu builtin "v_Silufloat32float32" args(0 in: device f32 read, 1 out: device f32 write)`)
			for _, name := range []string{"Add", "Multiply"} {
				fmt.Fprintf(&p.kernels, "  kernel @%s builtin \"vv_%sfloat32\" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)\n", name, name)
			}
			sizes := map[string]int{"x": 4 * rows * c.k, "norm": 4 * c.k, "r": 4 * rows * c.n}
			for _, m := range []string{"", "_up"} {
				sizes["w"+m], sizes["scales"+m], sizes["biases"+m] = c.n*c.k*c.b/8, c.n*c.k/8, c.n*c.k/8
			}
			in := func(name string) string { return p.memory("input", name, sizes[name]) }
			dispatches := 0
			dispatch := func(format string, args ...any) {
				fmt.Fprintf(&p.dispatches, "  #%d %s\n  barrier\n", dispatches, fmt.Sprintf(format, args...))
				dispatches++
			}
			result := 4 * rows * c.n
			multiply := func(m, x, y string) {
				dispatch("@qmv (w = %s, scales = %s, biases = %s, x = %s, y = %s, in_vec_size = %d, out_vec_size = %d) grid threadgroups [%d, %d, 1] of [32, 2, 1]",
					in("w"+m), in("scales"+m), in("biases"+m), x, y, c.k, c.n, rows, (c.n+7)/8)
			}
			elementwise := func(kernel, a, b, out string) {
				dispatch("@%s (a = %s, b = %s, c = %s) grid threads [%d, 1, 1] of [32, 1, 1]", kernel, a, b, out, rows*c.n)
			}
			x, groups, group := in("x"), 0, 8
			if strings.Contains(c.kernel, "rms") {
				x = p.memory("scratch", "n", sizes["x"])
				dispatch("@rms (x = %s, w = %s, out = %s, eps = 1e-05, axis_size = %d, w_stride = 1) grid threadgroups [%d, 1, 1] of [%d, 1, 1]",
					in("x"), in("norm"), x, c.k, rows, 32*((c.k+127)/128))
			}
			recorded := p.memory("output", "recorded", result)
			operands := []string{"w", "scales", "biases", "x"}
			sums := func(per int) int { return (c.n + per - 1) / per }
			switch one := p.memory("scratch", "one", result); {
			case strings.HasSuffix(c.kernel, "add"):
				multiply("", x, one)
				elementwise("Add", in("r"), one, recorded)
				operands = append(operands, "r")
				groups, group = sums(8), 4
				if c.n >= 4096 {
					groups = sums(16)
				}
			case strings.HasSuffix(c.kernel, "silu_mul"):
				two, three := p.memory("scratch", "two", result), p.memory("scratch", "three", result)
				multiply("", x, one)
				multiply("_up", x, two)
				dispatch("@silu (in = %s, out = %s) grid threads [%d, 1, 1] of [32, 1, 1]", one, three, rows*c.n)
				elementwise("Multiply", three, two, recorded)
				operands = []string{"w", "scales", "biases", "w_up", "scales_up", "biases_up", "x", "norm"}
				groups, group = sums(4), 2
			default:
				multiply("", x, recorded)
				operands = append(operands, "norm")
				groups, group = sums(32), 2
			}
			constants, values := []string{"in_vec_size: constant i32", "out_vec_size: constant i32"}, fmt.Sprintf("in_vec_size = %d, out_vec_size = %d", c.k, c.n)
			if strings.Contains(c.kernel, "rms") {
				constants, values = append([]string{"eps: constant f32"}, constants...), "eps = 1e-05, "+values
			}
			fmt.Fprintf(&p.kernels, "  kernel @fused builtin %q args(%s, %d y: device f32 write", c.kernel+ending, read(operands...), len(operands))
			for i, s := range constants {
				fmt.Fprintf(&p.kernels, ", %d %s", len(operands)+1+i, s)
			}
			fmt.Fprintln(&p.kernels, ")")
			// Once with all operands 4 bytes behind a multiple of 16, once with all at such multiples.
			wide := map[string]string{}
			for _, name := range operands {
				copied := p.memory("input", "wide."+name, sizes[name])
				wide[name] = at(copied, sizes[name])
			}
			for _, to := range []string{"any", "wide"} {
				var bound []string
				for _, name := range operands {
					where := in(name)
					if to == "wide" {
						where = wide[name]
					}
					bound = append(bound, argument(name)+" = "+where)
				}
				dispatch("@fused (%s, y = %s, %s) grid threadgroups [%d, %d, 1] of [32, %d, 1]", strings.Join(bound, ", "), p.memory("output", to, result), values, rows, groups, group)
			}
			text := fmt.Sprintf("mlxt 1\n\ngraph g {\n%s\n%s\n%s}\n", p.memories.String(), p.kernels.String(), strings.TrimSuffix(p.dispatches.String(), "  barrier\n"))
			m, err := mlxt.Parse(context.Background(), "products", []byte(text))
			require.NoError(t, err, text)
			s, err := replay.Open(d, &ir.Module{Graphs: m.Graphs}, replay.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			g, err := s.Graph(t.Context(), "g")
			require.NoError(t, err)
			random := rand.New(rand.NewPCG(1, uint64(c.k)))
			for _, name := range append([]string{"norm", "r", "w_up", "scales_up", "biases_up"}, operands...) {
				if !p.known[name] {
					continue
				}
				data := make([]byte, 4, 4+sizes[name])
				for len(data) < cap(data) {
					v := random.Uint32()
					if name != "w" && name != "w_up" {
						v = math.Float32bits(float32(random.NormFloat64()))
					}
					data = binary.LittleEndian.AppendUint32(data, v)
				}
				if p.known["wide."+name] {
					require.NoError(t, g.SetInput("wide."+name, append(data[4:len(data):len(data)], 0, 0, 0, 0)))
				}
				require.NoError(t, g.SetInput(name, data))
			}
			_, err = g.Run(t.Context())
			require.NoError(t, err)
			got := map[string][]byte{}
			for _, name := range []string{"recorded", "any", "wide"} {
				out, err := g.Output(name)
				require.NoError(t, err)
				got[name] = out[4:]
			}
			require.NotEqual(t, make([]byte, result), got["recorded"])
			require.Equal(t, got["recorded"], got["any"])
			require.Equal(t, got["recorded"], got["wide"])
		})
	}
}
