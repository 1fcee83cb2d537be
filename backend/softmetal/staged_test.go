package softmetal_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
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

// staged is a product by a kernel that keeps the vector in threadgroup memory.
type staged struct {
	kernel   string // the part of its name between affine_qmv_ and _float
	k, codes int    // columns, and columns of a quantization group
	n        []int  // rows of each matrix
}

// stagedGroups has, by kernel, how many rows a threadgroup computes, of one matrix or of three that follow one
// another, and its number of simdgroups.
var stagedGroups = map[string][2]int{
	"whole": {56, 14}, "whole_silu_mul": {28, 14}, "piped": {16, 10}, "piped_add": {16, 10}, "piped_x3": {24, 16},
}

// matrices returns the suffixes of the matrices' argument names, and the number of rows of each matrix.
func (s staged) matrices() (endings []string, ns []int) {
	switch {
	case len(s.n) == 3:
		return []string{"0", "1", "2"}, s.n
	case strings.HasSuffix(s.kernel, "silu_mul"):
		return []string{"_gate", "_up"}, []int{s.n[0], s.n[0]}
	}
	return []string{""}, s.n
}

const stagedRows = 2 // of x

// graph returns the text of a graph that computes the results with the kernel, and as "recorded" with the dispatches
// that it replaces. The kernel runs on operands 4 bytes behind a multiple of 16 ("any"), at multiples ("wide"), at
// multiples but for x ("wide_but_x") or the last codes ("wide_but_w"), and adds in place of its residual ("inplace").
// sizes are the bytes of operands.
func (s staged) graph() (text string, sizes map[string]int, outputs []string) {
	p := productGraph{known: map[string]bool{}}
	endings, ns := s.matrices()
	x, sums := 4*stagedRows*s.k, 0
	for _, n := range s.n {
		sums += n
	}
	result := 4 * stagedRows * sums
	sizes = map[string]int{"x": x}
	var operands []string
	for i, e := range endings {
		sizes["w"+e], sizes["scales"+e], sizes["biases"+e] = ns[i]*s.k/2, 4*ns[i]*s.k/s.codes, 4*ns[i]*s.k/s.codes
		operands = append(operands, "w"+e, "scales"+e, "biases"+e)
	}
	operands = append(operands, "x")
	adds := strings.HasSuffix(s.kernel, "add")
	if adds {
		sizes["r"] = result
		operands = append(operands, "r")
	}
	in := func(name string) string { return p.memory("input", name, sizes[name]) }
	wide := func(name string) string { return at(p.memory("input", "wide."+name, sizes[name]), sizes[name]) }
	dispatches := 0
	dispatch := func(format string, args ...any) {
		fmt.Fprintf(&p.dispatches, "  #%d %s\n  barrier\n", dispatches, fmt.Sprintf(format, args...))
		dispatches++
	}

	fmt.Fprintf(&p.kernels, "  kernel @qmv builtin \"affine_qmv_fast_float_gs_%d_b_4_batch_0_pr_0_hgs_0_r_4\" args(0 w: device u32 read, 1 scales: device f32 read, 2 biases: device f32 read, 3 x: device f32 read, 4 y: device f32 write, 5 in_vec_size: constant i32, 6 out_vec_size: constant i32)\n", s.codes)
	fmt.Fprintln(&p.kernels, `  kernel @silu builtin "v_Silufloat32float32" args(0 in: device f32 read, 1 out: device f32 write)`)
	fmt.Fprintln(&p.kernels, `  kernel @copy builtin "v_copyfloat32float32" args(0 src: device f32 read, 1 dst: device f32 write)`)
	for _, name := range []string{"Add", "Multiply"} {
		fmt.Fprintf(&p.kernels, "  kernel @%s builtin \"vv_%sfloat32\" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)\n", name, name)
	}
	all := fmt.Sprintf("grid threads [%d, 1, 1] of [32, 1, 1]", stagedRows*sums)

	// parts returns the views of the results of the matrices of s.n, which follow one another in a memory.
	parts := func(memory string) (views []string) {
		p.memory("output", memory, result)
		from := 4
		for _, n := range s.n {
			views = append(views, fmt.Sprintf("%%%s[%d:%d]", memory, from, from+4*stagedRows*n))
			from += 4 * stagedRows * n
		}
		return views
	}
	recorded := parts("recorded")
	var products []string
	for i, e := range endings {
		y := p.memory("scratch", "product"+e, 4*stagedRows*ns[i])
		if len(s.n) == 3 || s.kernel == "whole" || s.kernel == "piped" {
			y = recorded[i]
		}
		products = append(products, y)
		dispatch("@qmv (w = %s, scales = %s, biases = %s, x = %s, y = %s, in_vec_size = %d, out_vec_size = %d) grid threadgroups [%d, %d, 1] of [32, 2, 1]",
			in("w"+e), in("scales"+e), in("biases"+e), in("x"), y, s.k, ns[i], stagedRows, ns[i]/8)
	}
	switch {
	case adds:
		dispatch("@Add (a = %s, b = %s, c = %s) %s", in("r"), products[0], recorded[0], all)
	case len(products) == 2:
		act := p.memory("scratch", "act", result)
		dispatch("@silu (in = %s, out = %s) %s", products[0], act, all)
		dispatch("@Multiply (a = %s, b = %s, c = %s) %s", act, products[1], recorded[0], all)
	}

	fmt.Fprintf(&p.kernels, "  kernel @staged builtin \"affine_qmv_%s_float_gs_%d_b_4\" args(", s.kernel, s.codes)
	slot := 0
	argument := func(format string, args ...any) {
		fmt.Fprintf(&p.kernels, "%s%d %s", map[bool]string{true: ", "}[slot > 0], slot, fmt.Sprintf(format, args...))
		slot++
	}
	for _, name := range operands {
		argument("%s: device %s read", name, map[bool]string{true: "u32", false: "f32"}[name[0] == 'w'])
	}
	results, rows, values := []string{"y"}, []string{"out_vec_size"}, []string{fmt.Sprintf("in_vec_size = %d", s.k)}
	if len(s.n) == 3 {
		results, rows = []string{"y0", "y1", "y2"}, []string{"n0", "n1", "n2"}
	}
	for _, y := range results {
		argument("%s: device f32 write", y)
	}
	argument("in_vec_size: constant i32")
	for i, n := range rows {
		argument("%s: constant i32", n)
		values = append(values, fmt.Sprintf("%s = %d", n, s.n[i]))
	}
	fmt.Fprintln(&p.kernels, ")")
	groups := stagedGroups[s.kernel]
	outputs = []string{"any", "wide", "wide_but_x", "wide_but_w"}
	if adds {
		outputs = append(outputs, "inplace")
	}
	for _, to := range outputs {
		y := parts(to)
		var bound []string
		for _, name := range operands {
			where := in(name)
			switch {
			case name == "r" && to == "inplace":
				dispatch("@copy (src = %s, dst = %s) %s", where, y[0], all)
				where = y[0]
			case to == "wide", to == "wide_but_x" && name != "x", to == "wide_but_w" && name != "w"+endings[len(endings)-1]:
				where = wide(name)
			}
			bound = append(bound, name+" = "+where)
		}
		for i, name := range results {
			bound = append(bound, name+" = "+y[i])
		}
		dispatch("@staged (%s, %s) grid threadgroups [%d, %d, 1] of [32, %d, 1]",
			strings.Join(bound, ", "), strings.Join(values, ", "), stagedRows, (sums+groups[0]-1)/groups[0], groups[1])
	}
	return fmt.Sprintf("mlxt 1\n\ngraph g {\n%s\n%s\n%s}\n", p.memories.String(), p.kernels.String(), strings.TrimSuffix(p.dispatches.String(), "  barrier\n")), sizes, outputs
}

// A product whose vector lies in threadgroup memory has the bits of the dispatches that it replaces: with the vector
// in one piece or several, with simdgroups that have fewer rows than others or none, for all alignments, and for
// values so small that to scale them by a power of two is not exact.
func TestStagedProducts(t *testing.T) {
	sample.Seldom(t)
	cases := []staged{
		{"whole", 512, 32, []int{64}},
		{"whole", 1536, 32, []int{120}},
		{"whole", 4096, 32, []int{8}},
		{"whole", 4096, 32, []int{72}},
		{"whole_silu_mul", 512, 32, []int{32}},
		{"whole_silu_mul", 1536, 32, []int{64}},
		{"whole_silu_mul", 4096, 32, []int{8}},
		{"whole_silu_mul", 4096, 32, []int{40}},
		{"piped", 2048, 32, []int{24}},
		{"piped", 4096, 32, []int{8}},
		{"piped", 6144, 32, []int{40}},
		{"piped", 8192, 32, []int{24}},
		{"piped_add", 2048, 32, []int{8}},
		{"piped_add", 4096, 32, []int{40}},
		{"piped_add", 6144, 32, []int{24}},
		{"piped_x3", 2048, 32, []int{16, 8, 8}},
		{"piped_x3", 4096, 32, []int{40, 8, 16}},
		{"piped_x3", 6144, 32, []int{8, 24, 8}},
	}
	for _, checked := range []bool{false, true} {
		d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 2, Check: checked})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		some := sample.Families(t, t.Name(), cases, func(s staged) string { return s.kernel }, sample.Few)
		if checked {
			some = sample.Turns(t, t.Name()+", checked", cases)
		}
		for _, s := range some {
			name := fmt.Sprintf("%s/%d/%d/%d", s.kernel, s.k, s.codes, s.n)
			if checked {
				name = "checked/" + name
			}
			t.Run(name, func(t *testing.T) { s.compare(t, d) })
		}
	}
}

// compare runs the graph, and requires that all outputs have the recorded bits and the checker finds nothing.
func (s staged) compare(t *testing.T, d *softmetal.Device) {
	text, sizes, outputs := s.graph()
	m, err := mlxt.Parse(context.Background(), "staged", []byte(text))
	require.NoError(t, err, text)
	session, err := replay.Open(d, &ir.Module{Graphs: m.Graphs}, replay.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close()) }()
	g, err := session.Graph(t.Context(), "g")
	require.NoError(t, err)
	for _, small := range []bool{false, true} {
		random := rand.New(rand.NewPCG(2, uint64(s.k)))
		for _, name := range slices.Sorted(maps.Keys(sizes)) {
			data := make([]byte, 4, 4+sizes[name])
			for len(data) < cap(data) {
				v := random.Uint32()
				if name[0] != 'w' {
					f := random.NormFloat64()
					switch {
					case !small:
					case name == "x":
						f = math.Ldexp(f, -100-random.IntN(50))
					case name != "r": // so large that operations after the sums do not lose the results
						f = math.Ldexp(f, 80)
					}
					v = math.Float32bits(float32(f))
				}
				data = binary.LittleEndian.AppendUint32(data, v)
			}
			require.NoError(t, g.SetInput(name, data))
			require.NoError(t, g.SetInput("wide."+name, append(data[4:len(data):len(data)], 0, 0, 0, 0)))
		}
		_, err = g.Run(t.Context())
		require.NoError(t, err)
		for _, o := range d.Observed() {
			for i := range o.Findings {
				t.Errorf("#%d: %v", o.Command, &o.Findings[i])
			}
		}
		want, err := g.Output("recorded")
		require.NoError(t, err)
		want = want[4:]
		numbers := 0 // results that are neither zero nor NaN nor infinite
		for i := 0; i < len(want); i += 4 {
			if v := binary.LittleEndian.Uint32(want[i:]) &^ (1 << 31); v-1 < math.Float32bits(math.MaxFloat32) {
				numbers++
			}
		}
		require.Greater(t, numbers, len(want)/16)
		for _, name := range outputs {
			got, err := g.Output(name)
			require.NoError(t, err)
			got = got[4:]
			for i := 0; i < len(want); i += 4 {
				require.Equal(t, want[i:i+4], got[i:i+4], "result %d of %d, %s, small x: %t", i/4, len(want)/4, name, small)
			}
		}
	}
}
