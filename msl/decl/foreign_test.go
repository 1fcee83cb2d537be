package decl_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// Declarations of effects have arguments that are all of a view, and places within it, and no
// terms. Their regions are what the lines say, from the instance and from its form.
func TestEffectsOnly(t *testing.T) {
	for _, c := range []struct{ shape, access, want string }{
		{"_", "read", "reads %m[256:1280]"},
		{"_", "update", "may %m[256:1280]"},
		{"_", "atomic", "may atomic %m[256:1280]"},
		{"p at q", "read", "reads %m[272:284]"},
		{"p at q", "write", "must %m[272:284]"},
		{"p, q : 9, 1 at 3*q", "update", "may %m[304:320; 3 x 36]"},
		{"p, q : q, 1 at 2", "write", "must %m[264:312]"},
		{"n at pos", "read", "reads %m[4*$pos + 256:4*$n + 4*$pos + 256]"},
		{"0 at q", "read", ""},
		{"min(n, 8)", "read", "reads %m[256:4*$n + 256]"},
		{"max(n, 8)", "read", "reads %m[256:288]"},
		{"min(12, n)", "read", "reads %m[256:4*$n + 256]"},
		{"min(n, 0)", "read", ""},
		{"max(n, pos)", "read", "error: max(n, pos) is not affine in the params"},
		{"p at q - 5", "read", "error: place of y: q - 5 = -1, can be -1"},
		{"p at 300", "read", "error: 188 bytes past the bound view"},
	} {
		f := newFixture()
		src, err := decl.Parse("f.effects", source("kernel k", "effects seen somewhere", "arg 0 y device f32["+c.shape+"] "+c.access, "arg 1 p constant i32", "arg 2 q constant i32",
			"arg 3 n constant i32", "arg 4 pos constant i32", "groups 1, 1, 1", "group _, _, _"))
		require.NoError(t, err, c.shape)
		d := src.Decls[0]
		assert.True(t, d.EffectsOnly)
		assert.Equal(t, "seen somewhere", d.Source)
		n := f.dispatch(d, ir.Threadgroups, [3]int64{1, 1, 1}, one, ir.BufferArg(0, ir.ViewOf(f.mem, 256, 1024)), value(1, int32(3)), value(2, int32(4)),
			ir.ScalarArg(3, ir.I32, f.affine(0, f.n, 1)), ir.ScalarArg(4, ir.I32, f.affine(0, f.pos, 1)))
		in, err := f.bind(d, n)
		var e *ir.Effects
		if err == nil {
			e, err = in.Effects()
		}
		if what, bad := cut(c.want, "error: "); bad {
			assert.ErrorContains(t, err, what, c.shape)
			continue
		}
		require.NoError(t, err, c.shape)
		assert.Equal(t, c.want, said(f, e), c.shape)

		// A form gives the same, also where the view lies elsewhere.
		form, err := decl.NewForm(in, f.b.Unfinished().Root)
		require.NoError(t, err)
		moved := ir.CloneNode(n).(*ir.Dispatch)
		moved.Bindings[0].View.Off = ir.Const(512)
		for _, x := range []*ir.Dispatch{n, moved} {
			got := &ir.Effects{Complete: true, Reads: make([]ir.Region, form.Reads()), Writes: make([]ir.Write, form.Writes())}
			form.Effects(x, got.Reads, got.Writes)
			again, err := f.bind(d, x)
			require.NoError(t, err)
			want, err := again.Effects()
			require.NoError(t, err)
			assert.Equal(t, said(f, want), said(f, got), c.shape)
			assert.True(t, form.Describes(x, want), c.shape)
			assert.Equal(t, c.want == "" || x == n, form.Describes(n, want), c.shape)
			var placed decl.Instance
			form.Place(&placed, x, make([]ir.View, form.Views()))
			same, err := placed.Effects()
			require.NoError(t, err)
			assert.Equal(t, said(f, want), said(f, same), c.shape)
		}
	}
}

func cut(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):], true
	}
	return s, false
}

// said is effects as text.
func said(f *fixture, e *ir.Effects) (s string) {
	for _, r := range e.Reads {
		s += "reads " + f.b.Unfinished().FormatRegion(r)
	}
	for _, w := range e.Writes {
		if s += "may "; w.Must {
			s = s[:len(s)-4] + "must "
		}
		if w.Atomic {
			s += "atomic "
		}
		s += f.b.Unfinished().FormatRegion(w.Region)
	}
	return s
}

// Two arguments that may be one view begin at one place of it.
func TestEffectsInplace(t *testing.T) {
	for _, c := range []struct{ x, y, want string }{
		{"[4]", "[4]", ""},
		{"[_]", "[_]", ""},
		{"[4 at 2]", "[4 at 2]", ""},
		{"[4 at 2]", "[4 at 8]", ""}, // apart
		{"[4 at 2]", "[4 at 3]", "only be the same view"},
		{"[_]", "[4]", "only be the same view"},
	} {
		f := newFixture()
		src, err := decl.Parse("f.effects", source("kernel k", "effects", "arg 0 x device f32"+c.x+" read", "arg 1 y device f32"+c.y+" update", "groups 1, 1, 1", "group _, _, _", "inplace y x"))
		require.NoError(t, err)
		in, err := f.bind(src.Decls[0], f.dispatch(src.Decls[0], ir.Threadgroups, [3]int64{1, 1, 1}, one, f.view(0, 0, 64), f.view(1, 0, 64)))
		require.NoError(t, err)
		if err := in.CheckAliasing(); c.want == "" {
			assert.NoError(t, err, "%v", c)
		} else {
			assert.ErrorContains(t, err, c.want, "%v", c)
		}
	}
}

// An array of an argument has as many elements as were declared: what others would mean is
// not known.
func TestEffectsArrays(t *testing.T) {
	f := newFixture()
	src, err := decl.Parse("f.effects", source("kernel k", "effects", "arg 0 x device f32[n[1]] read", "arg 1 n constant i32[2]", "groups 1, 1, 1", "group _, _, _"))
	require.NoError(t, err)
	for n, ok := range map[int]bool{2: true, 3: false, 1: false} {
		_, err := f.bind(src.Decls[0], f.dispatch(src.Decls[0], ir.Threadgroups, [3]int64{1, 1, 1}, one, f.view(0, 0, 64), ir.BytesArg(1, make([]byte, 4*n))))
		assert.Equal(t, ok, err == nil, "%d: %v", n, err)
	}
}

const digest = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

func TestLibraryLines(t *testing.T) {
	k := source("kernel k", "effects", "groups 1, 1, 1", "group _, _, _")
	src, err := decl.Parse("f.effects", k+"\n\n// @library metallib \"a b.metallib\" sha256 "+digest+"\n"+k+"\n\n// @library source \"k.metal\" sha256 "+digest+" -- a remark\n\n"+k)
	require.NoError(t, err)
	require.Len(t, src.Decls, 3)
	assert.Nil(t, src.Decls[0].Of)
	assert.Equal(t, ir.Metallib, src.Decls[1].Of.Kind)
	assert.Equal(t, "a b.metallib", src.Decls[1].Of.Path)
	assert.Equal(t, digest, src.Decls[1].Of.Digest.String())
	assert.Equal(t, ir.SourceFile, src.Decls[2].Of.Kind)
	for line, want := range map[string]string{
		"builtin":                              "want metallib or source",
		"metallib mlx":                         "has no path in quotes",
		"metallib \"mlx\"":                     "want sha256",
		"metallib \"mlx\" sha256 12":           "want sha256 and 64 hexadecimal digits",
		"metallib \"\" sha256 " + digest:       "the path is empty",
		"metallib \"x\" md5 " + digest:         "want sha256",
		"metallib \"x\" sha256 z" + digest[1:]: "invalid byte",
		"metallib \"x\" sha256 0000000000000000000000000000000000000000000000000000000000000000": "all zeros",
	} {
		_, err := decl.Parse("f.effects", "// @library "+line+"\n"+k)
		assert.ErrorContains(t, err, want, line)
		assert.ErrorContains(t, err, "f.effects:1: @library", line)
	}
	_, err = decl.Parse("f.effects", "// @kernel k\n// @library metallib \"x\" sha256 "+digest)
	assert.ErrorContains(t, err, "f.effects:2: @library stands within a declaration")
}

// What only declarations of effects may have, and what they may not.
func TestEffectsErrors(t *testing.T) {
	grid := []string{"groups 1, 1, 1", "group _, _, _"}
	for want, lines := range map[string][]string{
		"only a declaration of effects":               {"kernel k", "arg 0 x device f32[_] read"},
		"y: only a declaration of effects":            {"kernel k", "arg 0 y device f32[2 at 3] read"},
		"is certainly written only if it has a shape": {"kernel k", "effects", "arg 0 x device f32[_] write"},
		"has terms, and @effects":                     {"kernel k", "effects", "arg 0 x device f32[2] write", "term x[i] = round(f32, 1.0)"},
		"one place stands behind at":                  {"kernel k", "effects", "arg 0 x device f32[2 at 1, 2] read"},
		"packed elements begin where their view":      {"kernel k", "effects", "arg 0 x device u32 as u4[8 at 1] read"},
		"is of a library whose code nobody compares":  {"library metallib \"x\" sha256 " + digest, "kernel k", "arg 0 x device f32[2] read"},
		"\"nowhere\" is not defined":                  {"kernel k", "effects", "arg 0 x device f32[2 at nowhere] read"},
	} {
		_, err := decl.Parse("f.effects", source(append(lines, grid...)...))
		assert.ErrorContains(t, err, want)
	}
}
