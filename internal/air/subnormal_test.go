package air

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSubnormals: a source is told that subnormal numbers are known on GPUs of NVIDIA, and nowhere else.
func TestSubnormals(t *testing.T) {
	const text = `define void @k(ptr addrspace(1) %p) {
  %known = tail call i1 @air.subnormals_known() #1
  br i1 %known, label %yes, label %no
yes:
  store float 1.0, ptr addrspace(1) %p
  ret void
no:
  store float 2.0, ptr addrspace(1) %p
  ret void
}
declare i1 @air.subnormals_known() #1
attributes #1 = { nounwind }
`
	for known, want := range map[bool]string{true: "%known = or i1 true, false", false: "%known = or i1 false, false"} {
		m, err := ReadModule("f.ll", []byte(text))
		require.NoError(t, err)
		require.NoError(t, m.Subnormals(known))
		assert.Contains(t, m.String(), want)
		assert.NotContains(t, m.String(), "air.subnormals_known")
	}
	m, err := ReadModule("f.ll", []byte(strings.ReplaceAll(text, "i1 @air", "i8 @air")))
	require.NoError(t, err)
	assert.ErrorContains(t, m.Subnormals(true), "air.subnormals_known has another type")
}
