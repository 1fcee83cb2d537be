package mlxfn_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/mlxfn"
)

// All functions of the archive are read to their last byte, and what they are is what the exporter was given.
func TestParse(t *testing.T) {
	files := archive(t)
	f, err := mlxfn.Parse("f", files["gpu/decoder_f16.mlxfn"])
	require.NoError(t, err)
	require.Equal(t, "0.32.4", f.Version)
	require.Equal(t, "written by testdata/gen/mlxfn.py", f.Metadata)
	require.Len(t, f.Functions, 1)
	of := &f.Functions[0]
	require.Len(t, of.Inputs, 6)
	require.Len(t, of.Outputs, 6)
	require.Equal(t, mlxfn.Array{Shape: []int64{1, 2, 16, 32}, Type: mlxfn.Float16}, of.Values[of.Inputs[2]])
	count := map[string]int{}
	for _, n := range of.Nodes {
		require.True(t, n.GPU)
		count[n.Name]++
	}
	require.Equal(t, 15, count["QuantizedMatmul"])
	require.Equal(t, 5, count["RMSNorm"])
	require.Equal(t, 4, count["RoPE"])
	require.Equal(t, 2, count["ScaledDotProductAttention"])
	require.Equal(t, 4, count["DynamicSliceUpdate"])

	f, err = mlxfn.Parse("f", several(t))
	require.NoError(t, err)
	require.Len(t, f.Functions, 2)
	f, err = mlxfn.Parse("f", files["cpu/keywords.mlxfn"])
	require.NoError(t, err)
	require.Equal(t, []string{"bias", "weight"}, f.Functions[0].Keywords)
	require.Equal(t, 1, f.Functions[0].Positional())
}

// several is a file with two traces.
func several(t *testing.T) []byte {
	data, err := os.ReadFile("../../testdata/mlxfn/several.mlxfn")
	require.NoError(t, err)
	return data
}

// A file that is cut anywhere is refused, with the place.
func TestCutFiles(t *testing.T) {
	files := archive(t)
	files["several.mlxfn"] = several(t)
	for _, name := range []string{"gpu/rms_norm_f16", "cpu/join", "cpu/quantize", "several"} {
		data := files[name+".mlxfn"]
		require.NotEmpty(t, data)
		for n := range data {
			_, err := mlxfn.Parse("f", data[:n])
			var at *frontend.Error
			require.ErrorAs(t, err, &at, "%s cut to %d bytes", name, n)
			require.LessOrEqual(t, at.Offset, int64(n))
		}
		_, err := mlxfn.Parse("f", append(data[:len(data):len(data)], 0))
		require.Error(t, err, name)
	}
}

// wrote is a file's beginning: the version and the number of functions.
type wrote struct{ b []byte }

func (w *wrote) text(s string) *wrote {
	w.b = append(binary.LittleEndian.AppendUint64(w.b, uint64(len(s))), s...)
	return w
}

func (w *wrote) i32(v ...int32) *wrote {
	for _, v := range v {
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(v))
	}
	return w
}

func (w *wrote) u64(v ...uint64) *wrote {
	for _, v := range v {
		w.b = binary.LittleEndian.AppendUint64(w.b, v)
	}
	return w
}

func (w *wrote) flag(v ...byte) *wrote {
	w.b = append(w.b, v...)
	return w
}

// function writes y = primitive(x), both f32[3].
func (w *wrote) function(primitive string, state ...byte) *wrote {
	w.u64(0).u64(1, 100).u64(1, 1).i32(3, 10).flag(4).u64(1, 200).u64(1)
	w.u64(200).flag(1).u64(1, 100).i32(0, 1, 0).text(primitive).flag(state...).u64(0)
	return w.u64(1).i32(3, 10).flag(4)
}

func TestVersions(t *testing.T) {
	start := func(version string, metadata bool) *wrote {
		w := (&wrote{}).text(version).i32(1).flag(0)
		if metadata {
			w.text("of mine")
		}
		return w
	}
	update := func(kind bool) (state []byte) {
		w := &wrote{}
		if kind {
			w.i32(4)
		}
		w.u64(1).i32(0).u64(1).i32(3).u64(1).i32(1)
		return w.b
	}
	for _, c := range []struct {
		version  string
		metadata bool
		name     string
		state    []byte
		why      string
	}{
		{"0.32.4", true, "Exp", nil, ""},
		{"0.32.1", true, "Exp", nil, ""},
		{"0.32.1.dev20260801+12345678", false, "Exp", nil, ""},
		{"0.32.0", false, "Exp", nil, ""},
		{"0.30.0", false, "Exp", nil, ""},
		{"0.29.3", false, "Exp", nil, "0.29.3"},
		{"0.31.1", false, "SliceUpdate", update(false), ""},
		{"0.31.2", false, "SliceUpdate", update(true), ""},
		{"0.31.1", false, "SliceUpdate", update(true), "offset"},
		{"0.32.4", true, "Segmented", nil, "Segmented is no primitive that is known"},
		{"0.32.0", true, "Exp", nil, "offset"},
	} {
		f, err := mlxfn.Parse("f", start(c.version, c.metadata).function(c.name, c.state...).b)
		if c.why != "" {
			require.ErrorContains(t, err, c.why, "%+v", c)
			continue
		}
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.version, f.Version)
		require.Equal(t, c.metadata, f.Metadata == "of mine")
		require.Equal(t, c.name, f.Functions[0].Nodes[0].Name)
	}
	// An unknown primitive is named with its place.
	data := start("0.32.4", true).function("Segmented").b
	_, err := mlxfn.Parse("f", data)
	var at *frontend.Error
	require.ErrorAs(t, err, &at)
	require.Equal(t, "Segmented", string(data[at.Offset+8:at.Offset+17]))
}

// A file may claim anything: it is read or refused, and no more memory is taken than some times its size.
func TestMutations(t *testing.T) {
	files := archive(t)
	files["several.mlxfn"] = several(t)
	var seeds [][]byte
	for _, name := range []string{"gpu/rms_norm_f16", "gpu/attention", "cpu/join", "cpu/dynamic", "cpu/convert", "several", "cpu/keywords"} {
		seeds = append(seeds, files[name+".mlxfn"])
	}
	random := rand.New(rand.NewPCG(1, 2))
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	read := 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	size := uint64(0)
	for range n {
		data := mutated(random, seeds[random.IntN(len(seeds))])
		size += uint64(len(data))
		if _, err := mlxfn.Parse("f", data); err == nil {
			read++
		} else {
			var at *frontend.Error
			require.True(t, errors.As(err, &at), "%v", err)
		}
	}
	runtime.ReadMemStats(&after)
	// Each layout is tried, and each makes lists and tables of what it reads.
	require.Less(t, after.TotalAlloc-before.TotalAlloc, 64*size+uint64(n)*4096)
	require.Positive(t, read)
}

func mutated(random *rand.Rand, seed []byte) []byte {
	data := append([]byte(nil), seed...)
	for range 1 + random.IntN(4) {
		at := random.IntN(len(data))
		switch random.IntN(6) {
		case 0:
			data[at] ^= 1 << random.IntN(8)
		case 1:
			data[at] = byte(random.IntN(256))
		case 2: // a count or length of any size
			if at+8 <= len(data) {
				binary.LittleEndian.PutUint64(data[at:], random.Uint64()>>random.IntN(64))
			}
		case 3:
			if at+4 <= len(data) {
				binary.LittleEndian.PutUint32(data[at:], random.Uint32()>>random.IntN(32))
			}
		case 4:
			data = append(data[:at], data[min(len(data), at+1+random.IntN(16)):]...)
		case 5:
			data = append(data[:at], append([]byte(strings.Repeat("\x00", random.IntN(9))), data[at:]...)...)
		}
		if len(data) == 0 {
			data = []byte{0}
		}
	}
	return data
}

func FuzzParse(f *testing.F) {
	for name, data := range archive(f) {
		if strings.HasSuffix(name, ".mlxfn") && len(data) < 4096 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := mlxfn.Parse("f", data); err == nil && len(m.Functions) > 0 {
			m.Functions[0].Positional()
		}
	})
}
