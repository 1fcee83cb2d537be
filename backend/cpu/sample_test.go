package cpu

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The known answers of Random123 (kat_vectors, philox4x32 with 10 rounds).
func TestPhilox(t *testing.T) {
	for _, k := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		assert.Equal(t, k.want, philox10(k.counter, k.key))
	}
}

// Weights are the unnormalised probabilities e^((x − top) / temp), accurate to 1e-6 relative and one unit of 2^−40
// absolute, and a code of higher probability never has a lower weight.
func TestSampleWeights(t *testing.T) {
	last := uint64(1) << 40
	check := func(c uint32) {
		w := weightOf(c)
		if want := math.Exp2(40 - float64(c)/(1<<20)); w > last || math.Abs(float64(w)-want) > 1+3e-9*want {
			t.Fatalf("code %d weighs %d, want %f; the one before weighs %d", c, w, want, last)
		}
		last = w
	}
	for c := range uint32(1 << 20) {
		check(c)
	}
	for c := uint32(1 << 20); c < 40<<20; c += 37 {
		check(c)
	}
	require.Equal(t, uint64(1)<<40, weightOf(0))
	require.Equal(t, uint64(1), weightOf(40<<20-1))
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		x, temp := float32(-30*r.Float64()), float32(0.1+2*r.Float64())
		want := math.Exp((float64(x) - 1.5) / float64(temp))
		require.InDelta(t, want, float64(weightOf(codeOf(x, 1.5, temp)))/(1<<40), 1e-11+5e-6*want, "%v at %v", x, temp)
	}
}

// sorted computes the definition of sampling by sorting the whole row, with integers of unlimited size.
func sorted(x []float32, temp, topP float32, seed uint64, position, row uint32) uint32 {
	best := 0
	top := float32(math.Inf(-1))
	for i, v := range x {
		if v > top {
			top, best = v, i
		}
	}
	if !(temp >= 1e-30) || math.IsInf(float64(top), 0) {
		return uint32(best)
	}
	var order []int
	c := make([]uint32, len(x))
	whole := new(big.Int)
	for i, v := range x {
		if c[i] = codeOf(v, top, temp); c[i] != noCode {
			order = append(order, i)
			whole.Add(whole, new(big.Int).SetUint64(weightOf(c[i])))
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(int64(c[i]) - int64(c[j])) })
	if topP < 1 {
		wanted := big.NewInt(int64(max(0, topP) * (1 << 24)))
		wanted.Rsh(wanted.Mul(wanted, whole), 24)
		if wanted.Sign() == 0 {
			wanted.SetInt64(1)
		}
		sum := new(big.Int)
		n := 0
		for sum.Cmp(wanted) < 0 {
			sum.Add(sum, new(big.Int).SetUint64(weightOf(c[order[n]])))
			n++
		}
		order, whole = order[:n], sum
	}
	slices.Sort(order)
	a, b := philox(position, row, seed)
	draw := new(big.Int).SetUint64(uint64(b)<<32 | uint64(a))
	draw.Rsh(draw.Mul(draw, whole), 64)
	at := new(big.Int)
	for _, i := range order {
		if at.Add(at, new(big.Int).SetUint64(weightOf(c[i]))); draw.Cmp(at) < 0 {
			return uint32(i)
		}
	}
	panic("nothing drawn")
}

// logitRow returns a row of random logits with many ties, NaNs and infinities.
func logitRow(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	step := []float32{0, 0.25, 3}[r.IntN(3)]
	for i := range x {
		x[i] = float32(r.NormFloat64() * 4)
		if step > 0 {
			x[i] = step * float32(math.Round(float64(x[i]/step)))
		}
		switch r.IntN(40) {
		case 0:
			x[i] = float32(math.NaN())
		case 1:
			x[i] = float32(math.Inf(-1))
		}
	}
	if r.IntN(30) == 0 {
		x[r.IntN(n)] = float32(math.Inf(1))
	}
	return x
}

func TestSampleIsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 20_000 {
		x := logitRow(r, 1+r.IntN(1+i%300))
		temp := []float32{0, -1, 0.01, 0.7, 1, 5, 1e30, 1e-40, float32(math.NaN()), float32(math.Inf(1))}[r.IntN(10)]
		topP := []float32{1, 2, 0.95, 0.5, 1e-3, 1e-9, 0, -1, 0.99999994}[r.IntN(9)]
		seed, position, row := r.Uint64(), r.Uint32(), r.Uint32N(4)
		require.Equal(t, sorted(x, temp, topP, seed, position, row), sample(x, temp, topP, seed, position, row), "case %d: temp %v, top-p %v, %v", i, temp, topP, x)
	}
}

// Over many positions, each index is drawn as often as its probability says.
func TestSampleFrequencies(t *testing.T) {
	x := []float32{1, 2, 0.5, 2, -1, -40, 1.25}
	const temp, n = 0.8, 200_000
	for topP, kept := range map[float32][]int{1: {0, 1, 2, 3, 4, 5, 6}, 0.8: {1, 3, 6}, 0.4: {1, 3}, 0.3: {1}} {
		sum := 0.0
		for _, i := range kept {
			sum += math.Exp(float64(x[i]) / temp)
		}
		counts := make([]int, len(x))
		for p := range uint32(n) {
			counts[Sample(x, temp, topP, 11, p)]++
		}
		for i, c := range counts {
			want := 0.0
			if slices.Contains(kept, i) {
				want = n * math.Exp(float64(x[i])/temp) / sum
			}
			assert.InDelta(t, want, float64(c), 5*math.Sqrt(want)+1e-3, "top-p %v, index %d", topP, i)
		}
	}
}
