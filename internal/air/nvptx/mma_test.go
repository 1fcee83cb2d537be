package nvptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// matrixProduct is a kernel that multiplies matrices of blocks of 8 by 8: d = a·b + c.
type matrixProduct struct {
	factor, sum string // types of elements
	rows, depth int    // blocks
	columns     int
	transposed  bool // b lies with its columns as rows
	apart       bool // a matrix is taken apart
	wide        bool // something is done with all 64 elements of a matrix
	diverging   bool // half of the simdgroup does not multiply
}

var shortNames = map[string]string{"float": "f32", "half": "f16", "bfloat": "bf16"}

// text is the kernel's: a has rows of 8·depth, b of 8·columns, or of 8·depth if it is transposed.
func (p matrixProduct) text() string {
	var b strings.Builder
	declares := map[string]bool{}
	load := func(name, from, elem string, row, x, y int, transposed bool) {
		fn := fmt.Sprintf("air.simdgroup_matrix_8x8_load.v64%s.p1%[1]s", shortNames[elem])
		declares[fmt.Sprintf("declare <64 x %s> @%s(ptr addrspace(1), i64, <2 x i64>, i1) #0", elem, fn)] = true
		fmt.Fprintf(&b, "  %%%s = call <64 x %s> @%s(ptr addrspace(1) %%%s, i64 %d, <2 x i64> <i64 %d, i64 %d>, i1 %v) #0\n", name, elem, fn, from, row, x, y, transposed)
	}
	for k := range p.depth {
		for i := range p.rows {
			load(fmt.Sprintf("a%d.%d", i, k), "a", p.factor, 8*p.depth, 8*k, 8*i, false)
		}
		for j := range p.columns {
			if p.transposed {
				load(fmt.Sprintf("b%d.%d", k, j), "b", p.factor, 8*p.depth, 8*k, 8*j, true)
			} else {
				load(fmt.Sprintf("b%d.%d", k, j), "b", p.factor, 8*p.columns, 8*j, 8*k, false)
			}
		}
	}
	for i := range p.rows {
		for j := range p.columns {
			load(fmt.Sprintf("c%d.%d.0", i, j), "c", p.sum, 8*p.columns, 8*j, 8*i, false)
		}
	}
	product := fmt.Sprintf("air.simdgroup_matrix_8x8_multiply_accumulate.v64%s.v64%s.v64%[2]s.v64%[1]s", shortNames[p.sum], shortNames[p.factor])
	declares[fmt.Sprintf("declare <64 x %s> @%s(<64 x %s>, <64 x %[3]s>, <64 x %[1]s>) #0", p.sum, product, p.factor)] = true
	if p.diverging {
		fmt.Fprintf(&b, "  %%low = icmp ult i32 %%lane, 16\n  br i1 %%low, label %%go, label %%end\ngo:\n")
	}
	for k := range p.depth {
		for i := range p.rows {
			for j := range p.columns {
				fmt.Fprintf(&b, "  %%c%d.%d.%d = call <64 x %s> @%s(<64 x %s> %%a%[1]d.%[7]d, <64 x %[6]s> %%b%[7]d.%[2]d, <64 x %[4]s> %%c%[1]d.%[2]d.%[7]d) #0\n", i, j, k+1, p.sum, product, p.factor, k)
			}
		}
	}
	store := fmt.Sprintf("air.simdgroup_matrix_8x8_store.v64%s.p1%[1]s", shortNames[p.sum])
	declares[fmt.Sprintf("declare void @%s(<64 x %s>, ptr addrspace(1), i64, <2 x i64>, i1) #0", store, p.sum)] = true
	for i := range p.rows {
		for j := range p.columns {
			fmt.Fprintf(&b, "  call void @%s(<64 x %s> %%c%d.%d.%d, ptr addrspace(1) %%d, i64 %d, <2 x i64> <i64 %d, i64 %d>, i1 false) #0\n", store, p.sum, i, j, p.depth, 8*p.columns, 8*j, 8*i)
			if p.apart {
				element := 1
				if p.wide {
					element = 5
				}
				fmt.Fprintf(&b, "  %%e%d.%d = extractelement <64 x %s> %%c%[1]d.%[2]d.%[4]d, i32 %[5]d\n  %%p%[1]d.%[2]d = getelementptr %[3]s, ptr addrspace(1) %%out, i32 %%lane\n  store %[3]s %%e%[1]d.%[2]d, ptr addrspace(1) %%p%[1]d.%[2]d\n", i, j, p.sum, p.depth, element)
			}
		}
	}
	if p.diverging {
		b.WriteString("  br label %end\nend:\n")
	}
	text := "define void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %d, ptr addrspace(1) %out, i32 %lane) {\n" + b.String() + "  ret void\n}\n"
	for d := range declares {
		text += d + "\n"
	}
	return text + "attributes #0 = { convergent nounwind }\n"
}

// run runs the kernel's text of a launch on made-up values; it returns them, and what is stored.
func (p matrixProduct) run(t *testing.T, c clang.Compiler, launch Launch, seed uint64, wild int) (a, b, sum, got []float64, text string) {
	t.Helper()
	device := func(name string) air.Arg { return air.Arg{Name: name, Space: air.Device} }
	text, err := launchOf(t, c, launch, p.text(), device("a"), device("b"), device("c"), device("d"), device("out"), air.Arg{Name: "lane", Attribute: "thread_index_in_simdgroup"})
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(seed, 1))
	m := &ptxrun.Memory{}
	memory := func(elem string, n, wild int) (values []float64, bytes []byte, at uint64) {
		for range n {
			x := float32(r.NormFloat64())
			if wild > 0 {
				switch n := r.IntN(12); {
				case n == 0 && wild > 1:
					x = []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 3.4e38, -3.4e38}[r.IntN(7)]
				case n == 1 && wild > 1:
					x *= 0x1p-140
				case n == 2:
					x *= 0x1p110
				}
			}
			switch elem {
			case "float":
				bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(x))
			case "bfloat":
				h := math.Float32bits(x) >> 16
				x = math.Float32frombits(h << 16)
				bytes = binary.LittleEndian.AppendUint16(bytes, uint16(h))
			default:
				x = float32(math.Round(float64(x)*256) / 256)
				bytes = binary.LittleEndian.AppendUint16(bytes, halfBits(float64(x)))
			}
			values = append(values, float64(x))
		}
		return values, bytes, m.Add(bytes)
	}
	var params []uint64
	for _, x := range []struct {
		to     *[]float64
		elem   string
		blocks int
		wild   int
	}{{&a, p.factor, p.rows * p.depth, wild}, {&b, p.factor, p.depth * p.columns, wild}, {&sum, p.sum, p.rows * p.columns, 0}} {
		values, _, at := memory(x.elem, 64*x.blocks, x.wild)
		*x.to, params = values, append(params, at)
	}
	_, stored, at := memory(p.sum, 64*p.rows*p.columns, 0)
	params = append(params, at, m.Add(make([]byte, 4*32)), 32, 1, 1, 32, 1, 1)
	program, err := ptxrun.Parse([]byte(text))
	require.NoError(t, err)
	require.NoError(t, program.Run(m, ptxrun.Launch{Params: params, Grid: [3]uint32{1, 1, 1}, Block: 32}))
	for i := range 64 * p.rows * p.columns {
		switch p.sum {
		case "float":
			got = append(got, float64(math.Float32frombits(binary.LittleEndian.Uint32(stored[4*i:]))))
		case "bfloat":
			got = append(got, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(stored[2*i:]))<<16)))
		default:
			got = append(got, halfValue(binary.LittleEndian.Uint16(stored[2*i:])))
		}
	}
	return a, b, sum, got, text
}

// halfBits and halfValue are of halfs that are no subnormals.
func halfBits(x float64) uint16 {
	if x == 0 {
		return 0
	}
	m, e := math.Frexp(math.Abs(x))
	bits := uint16(int(m*2048)-1024) | uint16(e+14)<<10
	if x < 0 {
		bits |= 0x8000
	}
	return bits
}

func halfValue(b uint16) float64 {
	x := math.Ldexp(float64(b&1023|1024), int(b>>10&31)-25)
	if b>>10&31 == 0 {
		x = math.Ldexp(float64(b&1023), -24)
	}
	if b&0x8000 != 0 {
		x = -x
	}
	return x
}

// held compares with the exact value: off says by how much of Σ|a·b| + |c| a result may be off.
func (p matrixProduct) held(t *testing.T, a, b, c, got []float64, off float64) {
	t.Helper()
	unit := map[string]float64{"float": 0x1p-24, "half": 0x1p-11, "bfloat": 0x1p-8}[p.sum]
	bad := 0
	for i := range 8 * p.rows {
		for j := range 8 * p.columns {
			sum, size := c[i*8*p.columns+j], 0.0
			plain := float32(sum)
			for k := range 8 * p.depth {
				at := k*8*p.columns + j
				if p.transposed {
					at = j*8*p.depth + k
				}
				x := a[i*8*p.depth+k] * b[at]
				sum, size = sum+x, size+math.Abs(x)
				plain = float32(math.FMA(a[i*8*p.depth+k], b[at], float64(plain)))
			}
			g := got[i*8*p.columns+j]
			if float64(plain) != float64(plain) || math.IsInf(float64(plain), 0) {
				if g != float64(plain) && (g == g || plain == plain) {
					bad++
					assert.Less(t, bad, 3, "row %d, column %d: %g, want %g", i, j, g, plain)
				}
				continue
			}
			bound := off*0x1p-24*size + float64(p.depth)*unit*(size+2*math.Abs(c[i*8*p.columns+j])+math.Abs(sum)) + 0x1p-149
			if !(math.Abs(g-sum) <= bound) {
				bad++
				assert.Less(t, bad, 3, "row %d, column %d: %g, want %g ± %g", i, j, g, sum, bound)
			}
		}
	}
}

// TestMatrices multiplies matrices, by shuffles and by mma, on what the interpreter of PTX makes of them.
func TestMatrices(t *testing.T) {
	sample.Long(t)
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	for n, x := range []struct {
		matrixProduct
		deep, flat int // how many mma of 16 and of 8 in depth
	}{
		// Of float they stand there twice: for factors of any size, and for such that no sum can overflow.
		{matrixProduct{factor: "float", sum: "float", rows: 2, depth: 2, columns: 2, transposed: true}, 2 * 12, 0},
		{matrixProduct{factor: "float", sum: "float", rows: 1, depth: 1, columns: 1}, 0, 2 * 6},
		{matrixProduct{factor: "float", sum: "float", rows: 3, depth: 3, columns: 1, apart: true}, 2 * 12, 2 * 12},
		{matrixProduct{factor: "half", sum: "float", rows: 2, depth: 4, columns: 1}, 2, 0},
		{matrixProduct{factor: "half", sum: "half", rows: 3, depth: 2, columns: 1, transposed: true}, 0, 4},
		{matrixProduct{factor: "bfloat", sum: "float", rows: 2, depth: 3, columns: 2, apart: true}, 2, 2},
		{matrixProduct{factor: "bfloat", sum: "bfloat", rows: 1, depth: 1, columns: 2}, 0, 2},
		{matrixProduct{factor: "float", sum: "float", rows: 2, depth: 2, columns: 1, apart: true, wide: true}, 0, 0},
	} {
		p := x.matrixProduct
		a, b, sum, got, text := p.run(t, c, Launch{}, uint64(n), 0)
		assert.NotContains(t, text, "mma.sync", "%+v", p)
		p.held(t, a, b, sum, got, float64(8*p.depth))
		for wild := range 3 { // not at all, large numbers, and what is not finite
			if wild > 0 && p.factor != "float" {
				break
			}
			a, b, sum, got, text = p.run(t, c, Launch{MMA: AllMMA}, uint64(n), wild)
			p.held(t, a, b, sum, got, 25)
		}
		assert.Equal(t, x.deep, strings.Count(text, "m16n8k16"), "%+v", p)
		assert.Equal(t, x.flat, strings.Count(text, "m16n8k8"), "%+v", p)
		assert.Equal(t, p.apart && !p.wide, strings.Contains(text, "movmatrix"), "%+v: matrices that are whole are loaded as mma takes them", p)
	}
	p := matrixProduct{factor: "half", sum: "float", rows: 1, depth: 1, columns: 1, diverging: true}
	device := func(name string) air.Arg { return air.Arg{Name: name, Space: air.Device} }
	text, err := launchOf(t, c, Launch{MMA: AllMMA}, p.text(), device("a"), device("b"), device("c"), device("d"), device("out"), air.Arg{Name: "lane", Attribute: "thread_index_in_simdgroup"})
	require.NoError(t, err)
	assert.NotContains(t, text, "mma.sync", "threads multiply that are not all of a warp")
}
