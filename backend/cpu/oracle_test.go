package cpu

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oracleCase is one line of testdata/kernels/*.json; testdata/gen/kernels.py, which
// writes one of them, says what it means.
type oracleCase struct {
	Kernel, Note           string
	Flags                  map[string]uint64
	Groups, Threads, Group [3]int
	Device                 map[string]struct {
		Data  *[2]int
		Bytes int
		Same  *int
	}
	Constant map[string]string
	Expect   []expectation
}

type expectation struct {
	Oracle         string
	Slot           int
	Shape, Strides []int
	Exact          bool
	Half           bool // elements have 16 bits, f16; so have Values that are exact
	BFloat         bool // they are bf16
	Tol            float64
	Values, Scale  *[2]int
}

func (c *oracleCase) String() string { return c.Kernel + " " + c.Note }

func loadCases(t testing.TB) (cases []oracleCase, blob []byte) {
	t.Helper()
	dir := filepath.Join("..", "..", "testdata", "kernels")
	for _, name := range []string{"cases", "moe", "ggml"} {
		text, err := os.ReadFile(filepath.Join(dir, name+".json"))
		require.NoError(t, err, "make it with testdata/gen/kernels*.py")
		arrays, err := os.ReadFile(filepath.Join(dir, name+".bin"))
		require.NoError(t, err, "make it with testdata/gen/kernels*.py")
		var file struct{ Cases []oracleCase }
		require.NoError(t, json.Unmarshal(text, &file))
		require.NotEmpty(t, file.Cases)
		for i := range file.Cases {
			file.Cases[i].move(len(blob))
		}
		cases, blob = append(cases, file.Cases...), append(blob, arrays...)
	}
	return cases, blob
}

// move shifts the places of all arrays by so many bytes.
func (c *oracleCase) move(by int) {
	for _, v := range c.Device {
		if v.Data != nil {
			v.Data[0] += by
		}
	}
	for _, e := range c.Expect {
		e.Values[0] += by
		if e.Scale != nil {
			e.Scale[0] += by
		}
	}
}

// call builds the call, and the buffers behind its device arguments.
func (c *oracleCase) call(t testing.TB, blob []byte) (*Call, map[int]*guarded) {
	t.Helper()
	call := &Call{Groups: c.Groups, Threads: c.Threads, Group: c.Group}
	for s, v := range c.Flags {
		call.Constants = append(call.Constants, ir.FunctionConstant{Index: uint16(number(t, s)), Type: ir.Bool, Bits: v})
	}
	for s, v := range c.Constant {
		b, err := hex.DecodeString(v)
		require.NoError(t, err)
		call.Constant[number(t, s)] = b
	}
	buffers := map[int]*guarded{}
	for s, v := range c.Device {
		if v.Same != nil {
			continue
		}
		b := newGuarded(v.Bytes)
		if v.Data != nil {
			b = newGuarded(v.Data[1])
			copy(b.view(), blob[v.Data[0]:v.Data[0]+v.Data[1]])
		}
		buffers[number(t, s)] = b
	}
	for s, v := range c.Device {
		if v.Same != nil {
			buffers[number(t, s)] = buffers[*v.Same]
		}
	}
	for s, b := range buffers {
		call.Device[s] = b.view()
	}
	return call, buffers
}

func number(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// TestOracle runs every kernel, with every implementation of package simd, on
// calls whose results NumPy computed in float64, and some also MLX.
func TestOracle(t *testing.T) {
	cases, blob := loadCases(t)
	forEachImpl(t, func(t *testing.T) {
		var w Worker // one for all: nothing that it remembers may show
		for i := range cases {
			c := &cases[i]
			call, buffers := c.call(t, blob)
			before := map[*guarded][]byte{}
			for _, b := range buffers {
				before[b] = append([]byte{}, b.view()...)
			}
			k := Lookup(c.Kernel)
			require.NotNil(t, k, c)
			k.Run(call, &w, 0, k.Units(call))
			for _, b := range buffers {
				require.True(t, b.intact(), "%v: wrote outside a view", c)
			}
			for _, e := range c.Expect {
				b := buffers[e.Slot]
				if msg := e.check(b.view(), before[b], blob); msg != "" {
					t.Errorf("%v: %s: %s", c, e.Oracle, msg)
				}
			}
			written := map[*guarded]bool{}
			for _, e := range c.Expect {
				written[buffers[e.Slot]] = true
			}
			for slot, b := range buffers {
				if !written[b] {
					assert.Equal(t, before[b], b.view(), "%v: changed argument %d", c, slot)
				}
			}
		}
	})
}

// check compares the elements that e names, and finds changes of the others.
func (e *expectation) check(got, before, blob []byte) string {
	values := blob[e.Values[0] : e.Values[0]+e.Values[1]]
	size := 4
	if e.Half {
		size = 2
	}
	at := func(b []byte, i int) uint32 {
		if e.Half {
			return uint32(binary.LittleEndian.Uint16(b[2*i:]))
		}
		return binary.LittleEndian.Uint32(b[4*i:])
	}
	expected := make([]bool, len(got)/size)
	worst := ""
	var worstRatio float64
	n := product(e.Shape)
	for p := range n {
		i := offsetOf(p, e.Shape, e.Strides)
		expected[i] = true
		g := at(got, i)
		if e.Half && e.Exact {
			if w := at(values, p); g != w && !(g&0x7fff > 0x7c00 && w&0x7fff > 0x7c00) {
				return fmt.Sprintf("element %d: got %#04x, want %#04x", p, g, w)
			}
			continue
		}
		w := binary.LittleEndian.Uint32(values[4*p:])
		if e.Half {
			g = math.Float32bits(e.decode(uint16(g)))
		}
		if e.Exact {
			if g != w && !(isNaN(g) && isNaN(w)) {
				return fmt.Sprintf("element %d: got %#08x (%v), want %#08x (%v)", p, g, fromBits(g), w, fromBits(w))
			}
			continue
		}
		scale := math.Abs(float64(fromBits(w)))
		if e.Scale != nil {
			scale = float64(fromBits(binary.LittleEndian.Uint32(blob[e.Scale[0]+4*p:])))
		}
		if r := ratio(fromBits(g), fromBits(w), e.Tol*scale); r > worstRatio {
			worstRatio = r
			worst = fmt.Sprintf("element %d: got %v, want %v, error %.3g of the tolerance %.3g", p, fromBits(g), fromBits(w), r, e.Tol*scale)
		}
	}
	for i, ok := range expected {
		if !ok && at(got, i) != at(before, i) {
			return fmt.Sprintf("wrote element %d of the buffer, which is none of the result", i)
		}
	}
	if worstRatio > 1 {
		return worst
	}
	return ""
}

// decode is the value of an element of 16 bits, encode the element of a value.
func (e *expectation) decode(h uint16) float32 {
	if e.BFloat {
		return fromBits(uint32(h) << 16)
	}
	return float32(term.F16Value(h))
}

func (e *expectation) encode(v float32) uint16 {
	h := [1]uint16{}
	if e.BFloat {
		toBFloat(h[:], []float32{v})
	} else {
		toHalf(h[:], []float32{v})
	}
	return h[0]
}

// ratio is the error of got in units of the tolerance: 0 for equal values,
// infinite where one of them is not finite and the other differs.
func ratio(got, want float32, tol float64) float64 {
	switch g, w := float64(got), float64(want); {
	case g == w || g != g && w != w:
		return 0
	case math.IsInf(w, 0) || w != w || g != g || tol == 0:
		return math.Inf(1)
	default:
		return math.Abs(g-w) / tol
	}
}

// TestOracleCoversEveryKernel also pins that no case lacks the numpy oracle.
func TestOracleCoversEveryKernel(t *testing.T) {
	cases, _ := loadCases(t)
	seen := map[string]int{}
	for _, c := range cases {
		require.NotEmpty(t, c.Expect, c.String())
		assert.Equal(t, "numpy", c.Expect[0].Oracle, c.String())
		seen[c.Kernel]++
	}
	for _, n := range Names() {
		if ofParts(n) {
			assert.Zero(t, seen[n], "%s has a case: take it off the list of fused kernels", n)
			continue
		}
		assert.GreaterOrEqual(t, seen[n], 1, "%s has no case", n)
		delete(seen, n)
	}
	assert.Empty(t, seen, "cases of kernels that do not exist")
}

// TestCheckNotices is the test of the checker: a wrong bit, a value outside the
// tolerance and a stray write are each seen.
func TestCheckNotices(t *testing.T) {
	cases, blob := loadCases(t)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range cases {
		for _, e := range cases[i].Expect {
			n := 0
			for j, s := range e.Shape {
				n += (s - 1) * e.Strides[j]
			}
			size := 4
			if e.Half {
				size = 2
			}
			good := newGuarded(size * (n + 1)).view()
			before := append([]byte{}, good...)
			for p := range product(e.Shape) {
				if e.Half && !e.Exact { // values are f32
					h := e.encode(fromBits(binary.LittleEndian.Uint32(blob[e.Values[0]+4*p:])))
					binary.LittleEndian.PutUint16(good[2*offsetOf(p, e.Shape, e.Strides):], h)
					continue
				}
				copy(good[size*offsetOf(p, e.Shape, e.Strides):], blob[e.Values[0]+size*p:e.Values[0]+size*p+size])
			}
			require.Empty(t, e.check(good, before, blob), &cases[i])

			bad := append([]byte{}, good...)
			at := r.IntN(len(bad) / size)
			if e.Half {
				h := uint16(0)
				if v := e.decode(binary.LittleEndian.Uint16(bad[2*at:])); v == v {
					h = e.encode(v*1.5 + 1)
				}
				binary.LittleEndian.PutUint16(bad[2*at:], h)
			} else if v := fromBits(binary.LittleEndian.Uint32(bad[4*at:])); v != v {
				binary.LittleEndian.PutUint32(bad[4*at:], 0)
			} else {
				binary.LittleEndian.PutUint32(bad[4*at:], math.Float32bits(v*1.5+1))
			}
			if !e.Exact || string(bad) != string(good) {
				assert.NotEmpty(t, e.check(bad, before, blob), "%v: element %d", &cases[i], at)
			}
		}
	}
}

func forEachImpl(t *testing.T, f func(t *testing.T)) {
	for _, impl := range simd.Available() {
		t.Run(string(impl), func(t *testing.T) {
			previous, err := simd.Use(impl)
			require.NoError(t, err)
			defer simd.Use(previous)
			f(t)
		})
	}
}

func fromBits(b uint32) float32 { return math.Float32frombits(b) }

func isNaN(b uint32) bool { return b&0x7fffffff > 0x7f800000 }

func product(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// offsetOf is the place of element p, in row-major order, under strides.
func offsetOf(p int, shape, strides []int) int {
	o := 0
	for i := len(shape) - 1; i >= 0; i-- {
		o += p % shape[i] * strides[i]
		p /= shape[i]
	}
	return o
}
