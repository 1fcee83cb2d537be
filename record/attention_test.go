package record_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Without a compiled library, attention takes the two kernels of long caches from as many keys on as MLX does, and the form that MLX
// takes; below that it is one.
func TestLongCachesInTwoPasses(t *testing.T) {
	absent := record.Tensor{}
	for _, c := range []struct {
		chip               string
		heads, keys, width int64
		want               string // the first kernel's name before its type; "" if there is one
	}{
		{"applegpu_g13g", 3, 4095, 64, ""},
		{"applegpu_g13g", 3, 4096, 64, "sdpa_vector_2pass_1"},
		{"applegpu_g13g", 1, 5000, 64, ""},
		{"applegpu_g15s", 1, 1023, 128, ""},
		{"applegpu_g15s", 1, 1024, 128, "sdpa_vector_2pass_1"},
		{"applegpu_g15s", 8, 8191, 64, "sdpa_vector_2pass_1"},
		{"applegpu_g15s", 8, 8192, 64, "sdpa_vector_2pass_1_gqa_8"},
		{"applegpu_g15d", 16, 8192, 128, "sdpa_vector_2pass_1_gqa_16"},
	} {
		for typ, name := range map[ir.DType]string{ir.F32: "float", ir.F16: "float16_t", ir.BF16: "bfloat16_t"} {
			s := record.New("t", record.Chip(c.chip))
			s.MLX().Attention(s.Input("q", typ, 1, c.heads, 1, c.width), s.Input("k", typ, 1, 1, c.keys, c.width),
				s.Input("v", typ, 1, 1, c.keys, c.width), absent, absent, 0.125, false)
			g, err := s.Graph()
			require.NoError(t, err)
			want := []string{fmt.Sprintf("sdpa_vector_%s_%d_%d", name, c.width, c.width)}
			if c.want != "" {
				want = []string{fmt.Sprintf("%s_%s_%d_%d", c.want, name, c.width, c.width), fmt.Sprintf("sdpa_vector_2pass_2_%s_%d", name, c.width)}
			}
			require.Equal(t, want, functions(g), "%+v", c)
		}
	}
}
