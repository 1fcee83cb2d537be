package ptx

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const text = `.version 8.0
.target sm_90

.visible .entry k(
	.param .u64 .ptr .global .align 1 k_param_0,
	.param .u32 k_param_1
)
.maxntid 64
{
	.reg .pred 	%p<3>;
	.shared .align 4 .b8 local[128];
// %bb.0:
	ld.param.b64 	%rd1, [k_param_0+4];
	@!%p1 bra 	$L__BB0_2;              // out
	mov.b64 	{%r1, _}, %rd1;
	mov.f32 %f1, 0f3F800000; add.s32 %r2, %r1, -1;
$L__BB0_2:                              // %end
	ret;
}
`

// TestParse: statements and operands are those of the text, and nothing of the text is lost.
func TestParse(t *testing.T) {
	m, err := Parse([]byte(text))
	require.NoError(t, err)
	assert.Equal(t, text, string(m.Bytes()))
	assert.Equal(t, "k", m.Name)
	assert.Equal(t, []Param{{"k_param_0", "u64"}, {"k_param_1", "u32"}}, m.Params)
	assert.False(t, m.Behind)
	assert.Equal(t, map[string]int{"$L__BB0_2": 16}, m.Labels())
	load := m.Lines[12].Instruction()
	require.NotNil(t, load)
	assert.Equal(t, Statement{Op: "ld.param.b64", Args: []Operand{
		{Text: "%rd1", Kind: Register, Name: "%rd1"}, {Text: "[k_param_0+4]", Kind: Memory, Name: "k_param_0", Number: 4},
	}}, *load)
	branch := m.Lines[13].Instruction()
	require.NotNil(t, branch)
	assert.Equal(t, Statement{Guard: "%p1", Unless: true, Op: "bra", Args: []Operand{{Text: "$L__BB0_2", Kind: Label, Name: "$L__BB0_2"}}}, *branch)
	pair := m.Lines[14].Instruction().Args[0]
	assert.Equal(t, List, pair.Kind)
	assert.Equal(t, Nothing, pair.Elements[1].Kind)
	assert.Nil(t, m.Lines[15].Instruction(), "there are two")
	assert.Equal(t, uint64(0x3f800000), m.Lines[15].Code[0].Args[1].Number)
	minus := int64(-1)
	assert.Equal(t, uint64(minus), m.Lines[15].Code[1].Args[2].Number)
	for i, executes := range map[int]bool{9: false, 11: false, 15: true, 16: false, 17: true, 18: false} {
		assert.Equal(t, executes, m.Lines[i].Executes(), m.Lines[i].Text)
	}
}

// TestChanges: lines that are put in place of others are read too, and directives stand behind the parameters.
func TestChanges(t *testing.T) {
	m, err := Parse([]byte(text))
	require.NoError(t, err)
	m.Directives(".minnctapersm 2")
	m.Replace(func(i int) ([]Line, bool) {
		if in := m.Lines[i].Instruction(); in == nil || in.Op != "bra" {
			return nil, false
		}
		return m.Lines[i].With("bar.sync \t0", "exit"), true
	})
	want := strings.Replace(strings.Replace(text, ".maxntid", ".minnctapersm 2\n.maxntid", 1), "@!%p1 bra \t$L__BB0_2;              // out", "bar.sync \t0;\n\texit", 1)
	assert.Equal(t, strings.Replace(want, "exit\n", "exit;\n", 1), string(m.Bytes()))
	again, err := Parse(m.Bytes())
	require.NoError(t, err)
	assert.Equal(t, again, m)
}

// TestUnclear: what is not understood is said to be so.
func TestUnclear(t *testing.T) {
	for _, l := range []string{"\tcall.uni (%r1), f, (%r2);\n", "\t{ call f;\n", "\tadd.s32 %r1,\n", "\tf, \n", "\t@%p1\n", "\t!x;\n"} {
		line := NewLine(l)
		assert.Nil(t, line.Instruction(), l)
		assert.True(t, line.Executes(), l)
		assert.Equal(t, l, line.Text)
	}
	_, err := Parse([]byte(".func f()\n{\n}\n"))
	assert.ErrorIs(t, err, ErrNoEntry)
	m, err := Parse([]byte(text + ".func f()\n{\n}\n"))
	require.NoError(t, err)
	assert.True(t, m.Behind)
}

// FuzzParse: no text stops the reader, which loses nothing of it.
func FuzzParse(f *testing.F) {
	f.Add(text)
	f.Add(".visible .entry \x00(\n\t@ ;$:;{};[];,{,\n%")
	f.Add("add ,0;")
	f.Fuzz(func(t *testing.T, s string) {
		if m, err := Parse([]byte(s)); err == nil {
			assert.Equal(t, s, string(m.Bytes()))
			for i := range m.Lines {
				m.Lines[i].Executes()
			}
		}
	})
}
