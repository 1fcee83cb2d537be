package air

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air/calls"
)

const loops = `define void @k(ptr addrspace(1) %p, i32 %i) #0 !dbg !6 {
  %c = icmp eq i32 %i, 0
  br i1 %c, label %spin, label %work

spin:
  br label %spin, !dbg !7

work:
  %n = phi i32 [ 0, %0 ], [ %m, %work ]
  %m = add i32 %n, 1
  %d = icmp eq i32 %m, %i
  br i1 %d, label %shout, label %work, !dbg !8

shout:
  store i32 %m, ptr addrspace(1) %p
  br label %shout, !dbg !8
}
attributes #0 = { mustprogress nounwind willreturn }
!llvm.dbg.cu = !{!3}
!3 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !4, emissionKind: LineTablesOnly)
!4 = !DIFile(filename: "k.metal", directory: "/")
!6 = distinct !DISubprogram(name: "k", scope: !4, file: !4, line: 7, unit: !3)
!7 = !DILocation(line: 42, column: 3, scope: !6)
!8 = !DILocation(line: 43, column: 3, scope: !6)
`

// A loop that nothing leaves and that does nothing is found; one that is left, or that others see at work, is not meant.
func TestEndless(t *testing.T) {
	assert.Equal(t, []int{42}, Endless(Input{Name: "k", IR: []byte(loops)}))
}

// On a host nothing promises any more that a function comes to its end.
func TestMayStay(t *testing.T) {
	m, err := ReadModule("k", []byte(loops))
	require.NoError(t, err)
	m.Target = calls.Host
	require.NoError(t, m.Prepare("k", nil, false))
	assert.Regexp(t, `^define void @k\(ptr addrspace\(1\) %p, i32 %i\) nounwind !dbg !6 $`, m.Funcs[0].Head)
}
