package textgen

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Draws follow softmax(logits / temperature): each frequency lies within five
// standard deviations of its probability.
func TestSampleFollowsSoftmax(t *testing.T) {
	logits := []float32{0, 1, 2, -1, 2}
	for _, temp := range []float64{0.5, 1, 3} {
		const n = 20000
		count := make([]float64, len(logits))
		for pos := range n {
			count[sample(logits, pos, Options{Temp: temp, TopP: 1, Seed: 1})]++
		}
		sum := 0.0
		for _, l := range logits {
			sum += math.Exp(float64(l) / temp)
		}
		for i, l := range logits {
			p := math.Exp(float64(l)/temp) / sum
			require.InDelta(t, p, count[i]/n, 5*math.Sqrt(p*(1-p)/n), "token %d at temperature %v", i, temp)
		}
	}
}

// Top-p keeps the smallest set of most likely tokens whose probability reaches p, of
// equal ones those with the lowest ID, and never less than one token.
func TestTopP(t *testing.T) {
	logits := []float32{float32(math.Log(0.1)), float32(math.Log(0.4)), float32(math.Log(0.4)), float32(math.Log(0.1))}
	for _, k := range []struct {
		p    float64
		want map[int32]bool
	}{
		{1e-9, map[int32]bool{1: true}}, {0.3, map[int32]bool{1: true}}, {0.5, map[int32]bool{1: true, 2: true}},
		{0.85, map[int32]bool{1: true, 2: true, 0: true}}, {1, map[int32]bool{0: true, 1: true, 2: true, 3: true}},
	} {
		got := map[int32]bool{}
		for pos := range 2000 {
			got[sample(logits, pos, Options{Temp: 1, TopP: k.p, Seed: 2})] = true
		}
		require.Equal(t, k.want, got, "top-p %v", k.p)
	}
}

func TestSeedRepeats(t *testing.T) {
	logits := make([]float32, 100)
	draw := func(seed uint64) (out []int32) {
		for pos := range 20 {
			out = append(out, sample(logits, pos, Options{Temp: 1, TopP: 1, Seed: seed}))
		}
		return out
	}
	require.Equal(t, draw(7), draw(7))
	require.NotEqual(t, draw(7), draw(8))
}

// A logit of −inf is never drawn, a very large one always.
func TestExtremeLogits(t *testing.T) {
	for pos := range 1000 {
		require.Equal(t, int32(1), sample([]float32{float32(math.Inf(-1)), 1e30, -1e30}, pos, Options{Temp: 0.1, TopP: 1, Seed: 3}))
	}
}
