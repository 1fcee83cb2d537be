package msl_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

func dispatches(g *ir.Graph) (out []*ir.Dispatch) {
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			out = append(out, d)
		}
	}
	return out
}

// TestCacheAllocatesNothing: a dispatch like one seen before costs less than a tenth of an
// allocation, because memory is allocated for many dispatches at a time.
func TestCacheAllocatesNothing(t *testing.T) {
	for _, name := range []string{"llama_layer_decode", "llama_layer_prefill"} {
		ds := dispatches(irtest.Repeat(recorded.Graph(t, name), 20))
		g := recorded.Graph(t, name)
		c := msl.NewCache(g)
		n := testing.AllocsPerRun(5, func() {
			for _, d := range ds {
				in, err := c.Bind(d)
				require.NoError(t, err)
				_, err = c.Effects(d)
				require.NoError(t, err)
				require.NoError(t, in.CheckAliasing())
				_, err = c.Describe(d)
				require.NoError(t, err)
			}
		}) / float64(len(ds))
		require.Less(t, n, 0.1, name)
	}
}

// TestCacheOwnsItsCopies: a pass that changes a dispatch in place changes neither
// what the cache knows nor what it gave away.
func TestCacheOwnsItsCopies(t *testing.T) {
	g := recorded.Graph(t, "llama_layer_decode")
	c := msl.NewCache(g)
	for _, d := range dispatches(g) {
		kept, err := c.Describe(d)
		require.NoError(t, err)
		copied := kept.Clone()
		for i := range d.Bindings {
			for j := range d.Bindings[i].Bytes {
				d.Bindings[i].Bytes[j] ^= 0x55
			}
			d.Bindings[i].View.Off = d.Bindings[i].View.Off.AddConst(1)
		}
		_, want := msl.Describe(g, d)
		_, got := c.Describe(d)
		require.Error(t, got)
		require.EqualError(t, got, want.Error())
		require.True(t, copied.Equal(kept))
	}
}

// TestCacheIsBounded: dispatches that are all different do not fill memory without end, and are
// still described.
func TestCacheIsBounded(t *testing.T) {
	g := recorded.Graph(t, "norm_residual")
	c := msl.NewCache(g)
	var norm *ir.Dispatch
	for _, d := range dispatches(g) {
		if d.Op == "rms_norm" {
			norm = d
		}
	}
	for i := range 20000 {
		d := ir.CloneNode(norm).(*ir.Dispatch)
		for j := range d.Bindings {
			if b := &d.Bindings[j]; b.Slot == 3 {
				b.Bytes = ir.ValueBytes(float32(i))
			}
		}
		e, err := c.Describe(d)
		require.NoError(t, err)
		require.True(t, e.Known())
	}
	require.Equal(t, 1<<14, c.Forms())
}

func BenchmarkDescribe(b *testing.B) {
	for _, name := range []string{"llama_layer_decode", "llama_layer_prefill"} {
		g := recorded.Graph(b, name)
		ds := dispatches(irtest.Repeat(g, 500))
		each := func(b *testing.B, f func(d *ir.Dispatch) error) {
			b.ReportAllocs()
			for b.Loop() {
				for _, d := range ds {
					if err := f(d); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ds)), "ns/dispatch")
		}
		b.Run(fmt.Sprintf("%s/uncached", name), func(b *testing.B) {
			each(b, func(d *ir.Dispatch) error { _, err := msl.Describe(g, d); return err })
		})
		b.Run(fmt.Sprintf("%s/cached", name), func(b *testing.B) {
			c := msl.NewCache(g)
			each(b, func(d *ir.Dispatch) error { _, err := c.Describe(d); return err })
		})
		b.Run(fmt.Sprintf("%s/bind", name), func(b *testing.B) {
			c := msl.NewCache(g)
			each(b, func(d *ir.Dispatch) error { _, err := c.Bind(d); return err })
		})
	}
}
