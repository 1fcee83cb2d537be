package ptxrun

import "math"

// tf32 is an f32 rounded to the 11 bits of a TF32, to the nearest, ties away from zero (cvt.rna.tf32.f32).
func tf32(v uint64) uint64 {
	x := uint32(v)
	if x&0x7f800000 == 0x7f800000 {
		if x&0x7fffff != 0 {
			return 0x7fffffff
		}
		return uint64(x)
	}
	return uint64((x + 0x1000) &^ 0x1fff)
}

// multiplyTF32 is mma.sync.m16n8k8 of TF32 (PTX ISA, "Matrix fragments for mma.m16n8k8"), of which the low 13 bits of a
// register are not looked at.
func multiplyTF32(warp []*thread, in *instruction) error {
	if err := whole(warp); err != nil {
		return err
	}
	value := func(t *thread, i int) float64 {
		return float64(math.Float32frombits(uint32(t.value(&in.args[i])) &^ 0x1fff))
	}
	var a [16][8]float64
	var b [8][8]float64
	for lane, t := range warp {
		group, in4 := lane>>2, lane&3
		for k := range 2 {
			for r := range 2 {
				a[group+8*r][in4+4*k] = value(t, 4+2*k+r)
			}
			b[in4+4*k][group] = value(t, 8+k)
		}
	}
	for lane, t := range warp {
		var d [4]uint64
		for i := range d {
			row, column := lane>>2+8*(i/2), 2*(lane&3)+i%2
			var products [8]float64
			for j := range products {
				products[j] = a[row][j] * b[j][column]
			}
			d[i] = ofSingle(float32(added(float64(single(t.value(&in.args[10+i]))), products)))
		}
		for i := range d {
			t.set(&in.args[i], d[i])
		}
	}
	return nil
}
