package simd

// HalfTo sets dst[i] to the value of the f16 with the bits src[i], exactly; a NaN becomes a quiet one with its sign and
// payload. The slices have one length.
func HalfTo(dst []float32, src []uint16) {
	sameLen("HalfTo", "dst", len(dst), "src", len(src))
	halfTo(dst, src)
}

// ToHalf sets dst[i] to the f16 nearest to src[i], ties to even. Values from 65520 on become infinity, and subnormals
// are kept. Any NaN becomes the canonical one, 0x7e00. The slices have one length.
func ToHalf(dst []uint16, src []float32) {
	sameLen("ToHalf", "dst", len(dst), "src", len(src))
	toHalf(dst, src)
}

// RoundHalf sets each element to the value of what [ToHalf] makes of it.
func RoundHalf(x []float32) { roundHalf(x) }

// BFloatTo sets dst[i] to the value of the bf16 with the bits src[i], its upper half. The slices have one length.
func BFloatTo(dst []float32, src []uint16) {
	sameLen("BFloatTo", "dst", len(dst), "src", len(src))
	bfloatTo(dst, src)
}

// ToBFloat sets dst[i] to the bf16 nearest to src[i], ties to even. Any NaN becomes the canonical one, 0x7fc0. The
// slices have one length.
func ToBFloat(dst []uint16, src []float32) {
	sameLen("ToBFloat", "dst", len(dst), "src", len(src))
	toBFloat(dst, src)
}

// RoundBFloat sets each element to the value of what [ToBFloat] makes of it.
func RoundBFloat(x []float32) { roundBFloat(x) }
