package cost_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/cost"
)

// A profile that is written and read back has the same numbers, to six digits. Written again, it is
// the same text.
func TestProfileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := func(name string) cost.Seconds {
			return cost.Seconds(rapid.Float64Range(0, 1e-2).Draw(t, name))
		}
		m := cost.Model{
			Bandwidth: rapid.Float64Range(1e9, 1e12).Draw(t, "bandwidth"), Rate: rapid.Float64Range(1e9, 1e13).Draw(t, "rate"), Cores: rapid.IntRange(1, 128).Draw(t, "cores"),
			Launch: seconds("launch"), ConcurrentLaunch: seconds("concurrent"), Barrier: seconds("barrier"), CommandBuffer: seconds("buffer"), Event: seconds("event"), Encode: seconds("encode"), Latency: seconds("latency"),
			Kernels: map[string]cost.Kernel{},
		}
		for range rapid.IntRange(0, 4).Draw(t, "kernels") {
			name := rapid.SampledFrom([]string{"rmsfloat32", `out0[i] = round(f32, select(in0[i] < 0.0 && in1[i] > 1.0, 1.0, in0[i]))`, `"\é`, "b"}).Draw(t, "name")
			k := cost.Kernel{Fixed: seconds("fixed"), PerByte: seconds("per byte") * 1e-6}
			for i := range rapid.IntRange(0, 3).Draw(t, "points") {
				k.Points = append(k.Points, cost.Point{Bytes: float64(i+1) * 1000, Time: seconds("point")})
			}
			m.Kernels[name] = k
		}
		if rapid.Bool().Draw(t, "doctor's") {
			m.Device = "Apple M3 \"Max\""
			m.Litmus = cost.Litmus{Fences: rapid.Bool().Draw(t, "fences"), IndirectBarriers: rapid.Bool().Draw(t, "indirect barriers")}
			m.Plans = map[string]cost.PlanTimes{"indirect": {Encode: seconds("plan's encode"), Launch: seconds("plan's launch"), Barrier: seconds("plan's barrier"), Replay: seconds("plan's replay")}, "serial": {}}
		}
		var text, again bytes.Buffer
		require.NoError(t, m.WriteProfile(&text))
		got, err := cost.ParseProfile("p", text.Bytes())
		require.NoError(t, err, text.String())
		require.NoError(t, got.WriteProfile(&again))
		require.Equal(t, text.String(), again.String())
		same := func(a, b cost.Seconds) { require.InEpsilon(t, 1+float64(a), 1+float64(b), 1e-6) }
		require.InEpsilon(t, m.Bandwidth, got.Bandwidth, 1e-5)
		require.InEpsilon(t, m.Rate, got.Rate, 1e-5)
		require.Equal(t, m.Cores, got.Cores)
		same(m.Launch, got.Launch)
		same(m.Barrier, got.Barrier)
		same(m.Event, got.Event)
		same(m.Latency, got.Latency)
		require.Equal(t, m.Device, got.Device)
		require.Equal(t, m.Litmus, got.Litmus)
		require.Len(t, got.Plans, len(m.Plans))
		for name, p := range m.Plans {
			same(p.Encode, got.Plans[name].Encode)
			same(p.Launch, got.Plans[name].Launch)
			same(p.Barrier, got.Plans[name].Barrier)
			same(p.Replay, got.Plans[name].Replay)
		}
		require.Len(t, got.Kernels, len(m.Kernels))
		for name, k := range m.Kernels {
			require.InDelta(t, float64(k.Fixed), float64(got.Kernels[name].Fixed), 1e-5*float64(k.Fixed))
			require.InDelta(t, float64(k.PerByte), float64(got.Kernels[name].PerByte), 1e-5*float64(k.PerByte))
			require.Len(t, got.Kernels[name].Points, len(k.Points))
			for i, p := range k.Points {
				require.InDelta(t, float64(p.Time), float64(got.Kernels[name].Points[i].Time), 1e-5*float64(p.Time))
			}
		}
	})
}

// Times that follow a line give the line; those that do not give one that is nowhere
// below 0.
func TestFit(t *testing.T) {
	f := cost.NewFit(cost.Model{})
	base := cost.Model{}.OrDefault()
	for _, x := range []float64{1e5, 2e5, 8e5} {
		f.Run("line", cost.Work{Bytes: x}, cost.Seconds(3e-6+x*1e-11))
		f.Run("falling", cost.Work{Bytes: x}, cost.Seconds(1e-4-x*1e-11))
		f.Run("steep", cost.Work{Bytes: x}, cost.Seconds(x*1e-10-1e-6))
		f.Run("one size", cost.Work{Bytes: 1e6, Operations: 4e6}, base.Launch+1e-6)
		f.Run("empty", cost.Work{}, 2e-6)
		f.Replay(6e-6, 3, 1e-6, 10)
	}
	m := f.Model()
	require.InDelta(t, 3e-6, float64(m.Kernels["line"].Fixed), 1e-12)
	require.InDelta(t, 1e-11, float64(m.Kernels["line"].PerByte), 1e-18)
	require.Zero(t, m.Kernels["falling"].PerByte)
	require.Zero(t, m.Kernels["steep"].Fixed)
	require.InDelta(t, 1e-10, float64(m.Kernels["steep"].PerByte), 1e-11)
	require.InDelta(t, float64(base.Launch), float64(m.Kernels["one size"].Fixed), 1e-12)
	require.InDelta(t, 1e-12, float64(m.Kernels["one size"].PerByte), 1e-18)
	require.Equal(t, cost.Kernel{Fixed: 2e-6}, m.Kernels["empty"])
	require.InDelta(t, 1e6/2.3e-6, m.Bandwidth, 1e6, "that of the kernel that moved most")
	require.InDelta(t, 4e6/2.3e-6, m.Rate, 1e6)
	require.InDelta(t, 2e-6, float64(m.Launch), 1e-12)
	require.InDelta(t, 2e-6, float64(m.Barrier), 1e-12)
	require.InDelta(t, 1e-7, float64(m.Encode), 1e-15)
	require.Equal(t, base.Event, m.Event, "what was not measured")
	require.Equal(t, base, func() cost.Model { m := cost.NewFit(cost.Model{}).Model(); m.Kernels = nil; return m }())
}

// TestPoints: where no line fits the sizes that were measured, a kernel takes what was measured, and between two sizes what lies between. Beyond them
// the line goes on from there.
func TestPoints(t *testing.T) {
	f := cost.NewFit(cost.Model{})
	times := map[float64]cost.Seconds{1e5: 2e-6, 1e6: 4e-6, 1e7: 5e-6, 1e8: 30e-6}
	for range 3 {
		for x, y := range times {
			f.Run("bent", cost.Work{Bytes: x}, y)
			f.Run("straight", cost.Work{Bytes: x}, cost.Seconds(2e-6+x*1e-12))
		}
	}
	f.Run("bent", cost.Work{Bytes: 1.01e6}, 4e-6) // the size that was measured
	for i := range 20 {
		f.Run("many", cost.Work{Bytes: 1e4 * float64(i*i+1)}, cost.Seconds(1+i%2)*1e-6)
	}
	m := f.Model()
	require.Empty(t, m.Kernels["straight"].Points)
	require.Empty(t, m.Kernels["many"].Points)
	k := m.Kernels["bent"]
	require.Len(t, k.Points, 4)
	for x, y := range times {
		require.InEpsilon(t, float64(y), float64(k.At(x)), 1e-2)
	}
	require.InEpsilon(t, 17.5e-6, float64(k.At(55e6)), 1e-9)
	line := cost.Kernel{Fixed: k.Fixed, PerByte: k.PerByte}
	require.InEpsilon(t, float64(line.At(1e9)*k.At(1e8)/line.At(1e8)), float64(k.At(1e9)), 1e-9)
	require.InEpsilon(t, float64(line.At(10)*k.At(1e5)/line.At(1e5)), float64(k.At(10)), 1e-9)
	require.Positive(t, k.At(0))
	many := "[[0, 1]"
	for i := range 16 {
		many += fmt.Sprintf(", [%d, 1]", i+1)
	}
	many += "]"
	for text, want := range map[string]string{
		`[[1, 2], [1, 3]]`: "1 bytes behind 1", `[[1]]`: "a list of 1 numbers", `[1]`: "want lists", `{}`: "want lists", `[[1, -2]]`: "want a number", `[[1, 2], [3, 4]`: "after array element",
		many: "more than 16",
	} {
		_, err := cost.ParseProfile("p", []byte(`{"kernels": {"k": {"points": `+text+`}}}`))
		require.ErrorContains(t, err, want, text)
	}
}

// TestLatency: a kernel that was not measured is taken to have the median fixed part of the measured kernels,
// and lines fit small and large runs with about the same relative error.
func TestLatency(t *testing.T) {
	base, err := cost.Chip(cost.H200)
	require.NoError(t, err)
	f := cost.NewFit(base)
	for _, x := range []float64{3e5, 1e6, 1e7, 5e7} {
		f.Run("product", cost.Work{Bytes: x, Operations: x}, cost.Seconds(4e-6+x/2e12)*cost.Seconds(1+0.05*float64(int(x)%3-1)))
	}
	f.Run("small", cost.Work{Bytes: 1e3}, 1e-6)
	f.Run("norm", cost.Work{Bytes: 5e3}, 2.5e-6)
	m := f.Model()
	require.InEpsilon(t, 4e-6, float64(m.Kernels["product"].Fixed), 0.06)
	require.InEpsilon(t, 1/2e12, float64(m.Kernels["product"].PerByte), 0.06)
	require.InDelta(t, 2.5e-6, float64(m.Kernels["norm"].Fixed), 1e-8, "one size: all but what its bytes take is fixed")
	require.InDelta(t, 1e-6, float64(m.Launch), 1e-12)
	require.InDelta(t, 1.5e-6, float64(m.Latency), 1e-8, "the middle of 1, 2.5 and 4 µs, beyond a launch")
	g := graph(t)
	m.Kernels = nil
	with := m.Dispatch(g, g.Nodes[1])
	m.Latency = 0
	require.InDelta(t, 1.5e-6, float64(with-m.Dispatch(g, g.Nodes[1])), 1e-8)
}

// TestUnmeasured: if other kernels were measured, one that was not takes no less than the longest of those that
// it replaces. A measured kernel, and any kernel if none was measured, keeps its modelled time.
func TestUnmeasured(t *testing.T) {
	var m cost.Model
	require.Equal(t, cost.Seconds(1), m.Unmeasured("fused", 1, 2))
	m.Kernels = map[string]cost.Kernel{"measured": {}}
	require.Equal(t, cost.Seconds(2), m.Unmeasured("fused", 1, 2))
	require.Equal(t, cost.Seconds(3), m.Unmeasured("fused", 3, 2))
	require.Equal(t, cost.Seconds(1), m.Unmeasured("measured", 1, 2))
}
