package cpu

import "math"

// These are the functions of the language of terms, except exp, which package simd has. They are
// computed in float64 and rounded once, which rounds abs and sqrt correctly. All kernels call
// these, so that a function has the same bits everywhere.

func abs32(x float32) float32    { return float32(math.Abs(float64(x))) }
func sqrt32(x float32) float32   { return float32(math.Sqrt(float64(x))) }
func rsqrt32(x float32) float32  { return float32(1 / math.Sqrt(float64(x))) }
func powerOf2(x float32) float32 { return float32(math.Exp2(float64(x))) }
func log32(x float32) float32    { return float32(math.Log(float64(x))) }
func sin32(x float32) float32    { return float32(math.Sin(float64(x))) }
func cos32(x float32) float32    { return float32(math.Cos(float64(x))) }
func tanh32(x float32) float32   { return float32(math.Tanh(float64(x))) }
func erf32(x float32) float32    { return float32(math.Erf(float64(x))) }
