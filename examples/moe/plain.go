package main

import (
	"math"
	"slices"
)

// compute computes the layer in plain Go and float64, to compare replays with.
func compute(w *weights, x []float32) []float64 {
	y := make([]float64, len(x))
	for t := range tokens {
		row := make([]float64, width)
		mean := 0.0
		for i := range row {
			row[i] = float64(x[t*width+i])
			mean += row[i] * row[i] / width
		}
		for i := range row {
			row[i] *= float64(w.norm[i]) / math.Sqrt(mean+eps)
		}
		logits := make([]float64, experts)
		order := make([]int, experts)
		for e := range experts {
			order[e] = e
			for i, v := range row {
				logits[e] += v * float64(w.router[e*width+i])
			}
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case logits[a] > logits[b]:
				return -1
			case logits[a] < logits[b]:
				return 1
			}
			return 0
		})
		sum := 0.0
		for _, e := range order[:chosen] {
			sum += math.Exp(logits[e] - logits[order[0]])
		}
		for i := range width {
			y[t*width+i] = float64(x[t*width+i])
		}
		for _, e := range order[:chosen] {
			share := math.Exp(logits[e]-logits[order[0]]) / sum
			gate, up := w.gate.times(e, row), w.up.times(e, row)
			for i := range gate {
				gate[i] *= up[i] / (1 + math.Exp(-gate[i]))
			}
			for i, v := range w.down.times(e, gate) {
				y[t*width+i] += share * v
			}
		}
	}
	return y
}

// times returns the product of matrix e and v.
func (s *stack) times(e int, v []float64) []float64 {
	out := make([]float64, s.n)
	for i := range out {
		for j, x := range v {
			out[i] += float64(s.at(e, i, j)) * x
		}
	}
	return out
}
