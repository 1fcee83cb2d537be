package textgen

import (
	"math"
	"slices"

	"github.com/mlxc/mlxc/backend/cpu"
)

// sample draws a token from the logits of a position. The kernel sample_float32 does it, on the host and on devices,
// from the logits, the seed and the position: the same logits give the same token wherever it is drawn.
// If the options ask for what the kernel does not know, before holds the tokens before this one, and logits changes.
func sample(logits []float32, position int, before []int32, o Options) int32 {
	topP := o.TopP
	if o.OnHost() {
		o.chain(logits, before)
		topP = 1
	}
	return int32(cpu.Sample(logits, float32(o.Temp), float32(topP), o.Seed, uint32(position)))
}

// OnHost reports whether the host must choose each token from its logits, since no graph does what the options say. At
// temperature 0, where only the most likely token counts, what takes others away changes nothing.
func (o *Options) OnHost() bool {
	return o.penalizes() || o.Temp > 0 && (o.TopK > 0 || o.MinP > 0)
}

func (o *Options) penalizes() bool {
	return o.Penalty != 0 && o.Penalty != 1 && o.PenaltyLast != 0
}

// chain changes logits as llama.cpp's default samplers do, in their order: the penalty for tokens that were there
// before, top-k, top-p and min-p. Logits of tokens that are out become −inf. The temperature comes last and is left to who
// draws, so that, unlike in the kernel, it does not change which tokens top-p keeps.
func (o *Options) chain(logits []float32, before []int32) {
	if o.penalizes() {
		penalize(logits, before, float32(o.Penalty), o.PenaltyLast)
	}
	if o.Temp == 0 {
		return
	}
	none := float32(math.Inf(-1))
	if k := o.TopK; k > 0 && k < len(logits) || o.TopP < 1 {
		kept := likeliest(logits, k, o.TopP)
		values := make([]float32, len(kept))
		for i, id := range kept {
			values[i] = logits[id]
		}
		for i := range logits {
			logits[i] = none
		}
		for i, id := range kept {
			logits[id] = values[i]
		}
	}
	if o.MinP > 0 {
		top := none
		for _, l := range logits {
			top = max(top, l)
		}
		least := min(top, top+float32(math.Log(o.MinP))) // one is kept, also at min-p 1
		for i, l := range logits {
			if l < least {
				logits[i] = none
			}
		}
	}
}

// penalize makes the tokens less likely that are among the last ones (−1: all): it divides positive logits and
// multiplies others, once for each token.
func penalize(logits []float32, before []int32, by float32, last int) {
	if last >= 0 && last < len(before) {
		before = before[len(before)-last:]
	}
	seen := make(map[int32]bool, len(before))
	for _, id := range before {
		if seen[id] || int(id) >= len(logits) {
			continue
		}
		seen[id] = true
		if l := &logits[id]; *l > 0 {
			*l /= by
		} else {
			*l *= by
		}
	}
}

// likeliest returns the most likely tokens, of equal ones those with the lowest ID first: k of them (all if k is 0), and of
// these as many as it takes for their share of the probability of the k to reach p. There is at least one.
func likeliest(logits []float32, k int, p float64) []int32 {
	before := func(a, b int32) bool { return logits[a] > logits[b] || logits[a] == logits[b] && a < b }
	after := func(a, b int32) bool { return before(b, a) }
	n := int32(len(logits))
	if k <= 0 || k > len(logits) {
		k = len(logits)
	}
	// The best k are found with the worst of them on top of a heap.
	kept := make([]int32, k)
	for i := range kept {
		kept[i] = int32(i)
	}
	if int32(k) < n {
		heapify(kept, after)
		for id := int32(k); id < n; id++ {
			if before(id, kept[0]) {
				kept[0] = id
				sink(kept, 0, after)
			}
		}
	}
	if p >= 1 {
		return kept
	}
	top := slices.Max(logits)
	weight := func(id int32) float64 { return math.Exp(float64(logits[id]) - float64(top)) }
	total := 0.0
	for _, id := range kept {
		total += weight(id)
	}
	// The best of these come from a heap with the best on top, since mostly a few are enough.
	heapify(kept, before)
	var out []int32
	for sum := 0.0; len(kept) > 0; {
		out = append(out, kept[0])
		if sum += weight(kept[0]); sum >= p*total {
			break
		}
		last := len(kept) - 1
		kept[0], kept = kept[last], kept[:last]
		sink(kept, 0, before)
	}
	return out
}

// heapify orders a heap: no element comes before the one above it.
func heapify(heap []int32, before func(a, b int32) bool) {
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i, before)
	}
}

// sink moves element i down to its place.
func sink(heap []int32, i int, before func(a, b int32) bool) {
	for {
		kid := 2*i + 1
		if kid >= len(heap) {
			return
		}
		if kid+1 < len(heap) && before(heap[kid+1], heap[kid]) {
			kid++
		}
		if !before(heap[kid], heap[i]) {
			return
		}
		heap[i], heap[kid] = heap[kid], heap[i]
		i = kid
	}
}
