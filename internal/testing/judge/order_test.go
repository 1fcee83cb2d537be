package judge

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir/mlxt"
)

// The barriers and commits of consecutive replays order what they should.
func TestHappensBefore(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "stream.mlxt", []byte(`mlxt 1

graph g {
  memory %x input 4
  memory %s scratch 4
  memory %y output 4

  #0 copy %x[0:4] -> %s[0:4]
  commit
  #1 fill %y[0:4] 0x00
  barrier
  #2 copy %s[0:4] -> %y[0:4]
  commit event
}
`))
	require.NoError(t, err)
	s := happensBefore(m.Graphs[0], 2, Options{})
	var got []string
	for i := range 6 {
		for j := range 6 {
			if s.after[i][j] {
				got = append(got, fmt.Sprintf("%d<%d", i, j))
			}
		}
	}
	require.Equal(t, []string{"0<3", "0<4", "0<5", "1<2", "1<3", "1<4", "1<5", "2<3", "2<4", "2<5", "4<5"}, got)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5}, s.extension(nil, written))
	require.Equal(t, []int{1, 2, 0, 4, 5, 3}, s.extension(nil, adverse))
}
