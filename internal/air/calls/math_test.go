package calls

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// oracle is what testdata/gen/air_math.py wrote.
type oracle struct {
	Functions map[string]struct {
		Args   []string // base64 of float32
		Want   string   // base64 of float64
		Half   []uint32 // CRC-32 of each 256 results
		Bfloat []uint32
	}
}

func decode[T any](t testing.TB, s string) []T {
	raw, err := base64.StdEncoding.DecodeString(s)
	require.NoError(t, err)
	var v T
	x := make([]T, len(raw)/binary.Size(v))
	_, err = binary.Decode(raw, binary.LittleEndian, x)
	require.NoError(t, err)
	return x
}

// bytesOf are the bytes of numbers.
func bytesOf[T any](x []T) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, x)
	if err != nil {
		panic(err)
	}
	return b
}

// ulps is how far a float is from a value, in units of the last place of floats of that size.
// A float beyond the range stands for 2^128. Which NaN it is does not matter.
func ulps(got float32, want float64) float64 {
	if math.IsNaN(want) || math.IsNaN(float64(got)) {
		if math.IsNaN(want) && math.IsNaN(float64(got)) {
			return 0
		}
		return math.Inf(1)
	}
	if want == 0 || math.IsInf(want, 0) {
		// The sign of a zero counts.
		if float64(got) == want && math.Signbit(float64(got)) == math.Signbit(want) {
			return 0
		}
		if want == 0 || math.Abs(float64(got)) < math.MaxFloat32 {
			return math.Inf(1)
		}
		return 0
	}
	g := float64(got)
	if math.IsInf(g, 0) {
		g = math.Copysign(0x1p128, g)
	}
	w := want
	if math.Abs(w) > 0x1p128 {
		w = math.Copysign(0x1p128, w)
	}
	_, e := math.Frexp(w)
	unit := math.Ldexp(1, max(min(e, 128)-24, -149))
	return math.Abs(g-w) / unit
}

// inFloat are the functions that are computed in float where a float is wanted, with their greatest errors in ulp.
var inFloat = map[string]float64{"exp": 1.01, "rsqrt": 1.5}

// TestMathematics holds every function of math.c against mpmath: floats at special, random
// and difficult arguments, and all halves and bfloats, which must be rounded as if once.
func TestMathematics(t *testing.T) {
	sample.Long(t)
	data, err := os.ReadFile("testdata/mathematics.json")
	require.NoError(t, err)
	var o oracle
	require.NoError(t, json.Unmarshal(data, &o))
	types := []struct {
		llvm, suffix string
		nan, top     uint16 // a NaN's bits, and infinity's
		sums         func(name string) []uint32
	}{
		{"half", "f16", 0x7e00, 0x7c00, func(n string) []uint32 { return o.Functions[n].Half }},
		{"bfloat", "bf16", 0x7fc0, 0x7f80, func(n string) []uint32 { return o.Functions[n].Bfloat }},
	}
	names := slices.Sorted(maps.Keys(o.Functions))
	require.Greater(t, len(names), 25)
	var fs []Function
	for _, n := range names {
		params := func(ty string) []string { return slices.Repeat([]string{ty}, len(o.Functions[n].Args)) }
		fs = append(fs, Function{"air." + n + ".f32", "float", params("float")}, Function{"air.fast_" + n + ".f32", "float", params("float")})
		for _, ty := range types {
			fs = append(fs, Function{"air." + n + "." + ty.suffix, ty.llvm, params(ty.llvm)})
		}
	}
	p := start(t, fs)
	all, partner := make([]uint16, 65536), make([]uint16, 65536)
	for i := range all {
		all[i], partner[i] = uint16(i), uint16(i*40503+12345)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			f := o.Functions[name]
			var args [][]byte
			var values [][]float32
			for _, a := range f.Args {
				values = append(values, decode[float32](t, a))
				args = append(args, bytesOf(values[len(values)-1]))
			}
			want := decode[float64](t, f.Want)
			got := bytesFloat(p.run(t, "air."+name+".f32", len(want), false, args...))
			worst, bound := 0.0, 0.5001
			if b, ok := inFloat[name]; ok {
				bound = b
			}
			for i := range want {
				u := ulps(got[i], want[i])
				if u > bound {
					var at []string
					for _, v := range values {
						at = append(at, fmt.Sprintf("%x", v[i]))
					}
					t.Errorf("%s%v = %x, off %.2f ulp from %x", name, at, got[i], u, want[i])
				}
				worst = max(worst, u)
			}
			t.Logf("%s: %.4f ulp", name, worst)
			fast := bytesFloat(p.run(t, "air.fast_"+name+".f32", len(want), false, args...))
			assert.Equal(t, bytesOf(got), bytesOf(fast), "fast on the host")
			for _, ty := range types {
				args := [][]byte{bytesOf(all), bytesOf(partner)}[:len(args)]
				got := decodeBits(p.run(t, "air."+name+"."+ty.suffix, 65536, false, args...))
				for i, g := range got {
					if g&0x7fff > ty.top {
						got[i] = ty.nan
					}
				}
				for i, sum := range ty.sums(name) {
					assert.Equal(t, sum, crc32.ChecksumIEEE(bytesOf(got[256*i:256*i+256])), "%s of %s from 0x%04x on", name, ty.llvm, 256*i)
				}
			}
		})
	}
}

func decodeBits(b []byte) []uint16 {
	x := make([]uint16, len(b)/2)
	for i := range x {
		x[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return x
}
