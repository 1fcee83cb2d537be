package dispatches

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/msl/decl"
)

// TestMistakes: common mistakes in a declaration, or in its implementation for the CPU, are
// reported in terms of the declaration. (Packages decl and mslcheck test declarations that do
// not parse and sources that differ from their declarations.)
func TestMistakes(t *testing.T) {
	const declaration = `// @kernel NAME
// @arg 0 x device f32[rows, n] read
// @arg 1 y device f32[rows, n] write
// @arg 2 n constant u32
// @groups rows, 1, 1
// @group 32, 1, 1
// @require n >= 1
// @term y[r, i] = round(f32, x[r, i] * 2.0)
`
	twice := func(x, y []float32) {
		for i, v := range x {
			y[i] = 2 * v
			if v != v {
				y[i] = math.Float32frombits(0x7fc00000)
			}
		}
	}
	for _, c := range []struct {
		name     string
		from, to string
		twin     func(x, y []float32)
		want     string
	}{
		{"right", "", "", twice, ""},
		{"no_twin", "", "", nil, `the CPU has no kernel "mistake_no_twin": give it a twin with cpu.Register`},
		{"fewer_reads", "x device f32[rows, n] read", "x device f32[rows, n - 1] read", twice, "the declaration "},
		{"rows_for_columns", "x device f32[rows, n]", "x device f32[n, rows]", twice, "is outside its shape"},
		{"update_for_write", "n] write", "n] update", twice, "an update is declared, but in 100 dispatches no old byte survived or mattered: declare a write"},
		{"other_term", "x[r, i] * 2.0", "x[r, i] + 2.0", twice, ", the term gives "},
		{"no_dispatch", "n >= 1", "n >= 1 && n < 1", twice, "fulfils its conditions"},
		{"reads_too_far", "", "", func(x, y []float32) { twice(x, y); y[0] = 2 * x[len(x)] },
			"index out of range ["},
		{"writes_too_far", "", "", func(x, y []float32) { twice(x, y); y[len(x)] = 0 },
			": the kernel is given no bytes but those of its views, which hold what the declaration says that it touches: one of the two is wrong"},
		{"leaves_an_element", "", "", func(x, y []float32) { twice(x[1:], y[1:]) }, "is not written, the declaration says it must be"},
		{"writes_what_it_reads", "", "", func(x, y []float32) { twice(x, y); x[0] = 1 }, "the declaration does not say that it is written"},
		{"keeps_a_nan", "", "", func(x, y []float32) {
			for i, v := range x {
				y[i] = 2 * v
			}
		}, ", a store leaves 0x7fc00000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := "mistake_" + c.name
			read, err := decl.Parse("mistake.metal", strings.NewReplacer("NAME", name, c.from, c.to).Replace(declaration))
			require.NoError(t, err)
			if c.twin != nil && cpu.Lookup(name) == nil {
				cpu.Register(&cpu.Kernel{
					Name: name, Units: func(*cpu.Call) int { return 1 }, Cost: func(*cpu.Call) float64 { return 1 },
					Run: func(call *cpu.Call, _ *cpu.Worker, _, _ int) {
						n := call.Groups[0] * call.Uint(2)
						c.twin(call.F32(0)[:n], call.F32(1)[:n])
					},
				})
			}
			device := cpu.New(1)
			defer device.Close()
			_, err = Cases(device, read.Decls[0], 100, Everything, name)
			if c.want == "" {
				assert.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			if c.name != "no_dispatch" && c.name != "update_for_write" {
				assert.ErrorContains(t, err, name+" of mistake.metal:1, ") // the dispatch that shows it
			}
		})
	}
}
