package textgen

import (
	"encoding/json"
	"math"
	"os"
	"slices"
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
			count[sample(logits, pos, nil, Options{Temp: temp, TopP: 1, Seed: 1})]++
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
			got[sample(logits, pos, nil, Options{Temp: 1, TopP: k.p, Seed: 2})] = true
		}
		require.Equal(t, k.want, got, "top-p %v", k.p)
	}
}

func TestSeedRepeats(t *testing.T) {
	logits := make([]float32, 100)
	draw := func(seed uint64) (out []int32) {
		for pos := range 20 {
			out = append(out, sample(logits, pos, nil, Options{Temp: 1, TopP: 1, Seed: seed}))
		}
		return out
	}
	require.Equal(t, draw(7), draw(7))
	require.NotEqual(t, draw(7), draw(8))
}

// A logit of −inf is never drawn, a very large one always.
func TestExtremeLogits(t *testing.T) {
	for pos := range 1000 {
		require.Equal(t, int32(1), sample([]float32{float32(math.Inf(-1)), 1e30, -1e30}, pos, nil, Options{Temp: 0.1, TopP: 1, Seed: 3}))
	}
}

// TestChainAsLlamaCpp: penalties, top-k, top-p and min-p leave the candidates that llama.cpp's samplers leave, with their
// probabilities at the temperature (testdata/gen/samplers.py).
func TestChainAsLlamaCpp(t *testing.T) {
	raw, err := os.ReadFile("../../../testdata/tokenizer/samplers.json")
	require.NoError(t, err)
	var o struct {
		Rows  [][]float32
		Cases []struct {
			Row     int
			Before  []int32
			Temp    float64
			TopK    int     `json:"top_k"`
			TopP    float64 `json:"top_p"`
			MinP    float64 `json:"min_p"`
			Penalty float64
			Last    int
			IDs     []int32
			P       []float64
		}
	}
	require.NoError(t, json.Unmarshal(raw, &o))
	require.Len(t, o.Cases, 250)
	for i, c := range o.Cases {
		logits := slices.Clone(o.Rows[c.Row])
		with := Options{Temp: c.Temp, TopK: c.TopK, TopP: c.TopP, MinP: c.MinP, Penalty: c.Penalty, PenaltyLast: c.Last}
		with.chain(logits, c.Before)
		want := map[int32]float64{}
		for k, id := range c.IDs {
			want[id] = c.P[k]
		}
		top, sum := float64(slices.Max(logits)), 0.0
		for _, l := range logits {
			sum += math.Exp((float64(l) - top) / c.Temp)
		}
		for id, l := range logits {
			p, kept := want[int32(id)]
			require.Equal(t, kept, !math.IsInf(float64(l), -1), "case %d %+v, token %d", i, with, id)
			require.InDelta(t, p, math.Exp((float64(l)-top)/c.Temp)/sum, 2e-6, "case %d %+v, token %d", i, with, id)
		}
		// What is drawn is among them, and the same for the same seed and position.
		for pos := range 20 {
			with.Seed = uint64(i)
			one := sample(slices.Clone(o.Rows[c.Row]), pos, c.Before, with)
			if with.OnHost() {
				require.Contains(t, c.IDs, one)
			}
			require.Equal(t, one, sample(slices.Clone(o.Rows[c.Row]), pos, c.Before, with))
		}
	}
}

// Without a temperature the penalty alone can change the choice, and what takes unlikely tokens away needs no host.
func TestChainAtTemperature0(t *testing.T) {
	for _, o := range []Options{{TopK: 3}, {MinP: 0.1}, {TopP: 0.5}, {Penalty: 1.5}, {Penalty: 1, PenaltyLast: 64, Temp: 1}, {Temp: 1, TopP: 0.5}} {
		require.False(t, o.OnHost(), "%+v", o)
	}
	logits := []float32{1, 3, 2.5}
	o := Options{TopP: 1, Penalty: 1.5, PenaltyLast: 2, TopK: 1, Seed: 4}
	require.True(t, o.OnHost())
	require.Equal(t, int32(2), sample(slices.Clone(logits), 0, []int32{1}, o))
	require.Equal(t, int32(1), sample(slices.Clone(logits), 0, []int32{1, 0, 0}, o), "too long ago")
	o.PenaltyLast = -1
	require.Equal(t, int32(2), sample(slices.Clone(logits), 0, []int32{1, 0, 0}, o))
}
