package prebuilt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
)

func some() (out []Compiled) {
	for _, name := range []string{"f", "g"} {
		for k, file := range []string{"b.metal", "a.metal"} {
			for _, l := range Launches {
				r := NewRequest(file, "text "+file, name)
				r.Constants, r.Launch = []air.ConstantValue{{Index: 4, Bits: 0}, {Index: 3, Bits: 1}}, l
				out = append(out, Compiled{r, Kernel{&air.Kernel{Name: name, MaxThreadgroup: 32 << k}, fmt.Appendf(nil, "%s of %s, %+v", name, file, l)}})
			}
		}
	}
	return out
}

// TestArchive: an archive has what was put into it, in whatever order, and says why it has not what it has not.
func TestArchive(t *testing.T) {
	all := some()
	data, err := Write("clang 1", all)
	require.NoError(t, err)
	slices.Reverse(all)
	again, err := Write("clang 1", all)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(data, again))
	a, err := Read(data)
	require.NoError(t, err)
	assert.Equal(t, len(all), a.Count())
	assert.Equal(t, "clang 1", a.Compiler())
	for _, c := range all {
		r := c.Request
		r.Constants = []air.ConstantValue{{Index: 3, Bits: 1}, {Index: 9}}
		k, err := a.Find(r)
		require.NoError(t, err)
		assert.Equal(t, c.Kernel, k)
	}
	r := all[0].Request
	r.Launch.Values = false // is the same where nothing is to be had by value
	k, err := a.Find(r)
	require.NoError(t, err)
	assert.Equal(t, all[0].Kernel, k)
	for _, x := range []struct {
		change func(*Request)
		want   error
	}{
		{func(r *Request) { r.Function = "h" }, ErrUnknown}, {func(r *Request) { r.File = "c.metal" }, ErrUnknown},
		{func(r *Request) { r.Constants = nil }, ErrUnknown}, {func(r *Request) { r.Code[0]++ }, ErrStale},
	} {
		other := r
		x.change(&other)
		_, err := a.Find(other)
		assert.ErrorIs(t, err, x.want)
	}
	a.Maker = "another"
	_, err = a.Find(r)
	assert.ErrorIs(t, err, ErrMaker)
}

// TestAddresses: a kernel that gets constants by value has other texts where it gets their addresses, which an
// archive has beside them or has not.
func TestAddresses(t *testing.T) {
	k := &air.Kernel{Name: "f", Args: []air.Arg{{Space: air.Constant, Size: 4}}}
	r := OfFile("some/folder/f.metal", "text", "f")
	assert.Equal(t, "f.metal", r.File)
	assert.NotEqual(t, r.Code, OfFile("f.metal", "other text", "f").Code)
	assert.False(t, r.Matrices)
	assert.True(t, OfFile("f.metal", "simdgroup_multiply(a, b, c)", "f").Matrices)
	var all []Compiled
	for _, l := range []nvptx.Launch{{Values: true}, {}, {Values: true, Moving: true}} {
		r.Launch = l
		all = append(all, Compiled{r, Kernel{k, fmt.Appendf(nil, "%+v", l)}})
	}
	data, err := Write("", all)
	require.NoError(t, err)
	a, err := Read(data)
	require.NoError(t, err)
	for _, c := range all {
		found, err := a.Find(c.Request)
		require.NoError(t, err)
		assert.Equal(t, string(c.PTX), string(found.PTX))
	}
	r.Launch = nvptx.Launch{Moving: true}
	_, err = a.Find(r)
	assert.ErrorIs(t, err, ErrUnknown)
}

// TestSame: texts of other states of a source and of the compiler are found where a note says that today's are the same,
// of that archive, for that digest.
func TestSame(t *testing.T) {
	all := some()
	data, err := Write("", all)
	require.NoError(t, err)
	read := func() *Archive {
		a, err := Read(data)
		require.NoError(t, err)
		a.Maker = "another"
		return a
	}
	today := all[0].Request
	today.Code[0]++
	a := read()
	others := a.AsToday([]Request{today, all[len(all)-1].Request})
	assert.Equal(t, map[string]Digest{today.Function: today.Code}, others)
	k, err := a.Find(today)
	require.NoError(t, err)
	assert.Equal(t, all[0].Kernel, k)

	note := Same(data, Maker(), others)
	a = read()
	a.trust(data, note)
	k, err = a.Find(today)
	require.NoError(t, err)
	assert.Equal(t, all[0].Kernel, k)
	_, err = a.Find(all[len(all)-1].Request)
	assert.NoError(t, err)
	third := today
	third.Code[1]++
	_, err = a.Find(third)
	assert.ErrorIs(t, err, ErrStale)
	other := today
	other.Function = "g"
	_, err = a.Find(other)
	assert.ErrorIs(t, err, ErrStale)

	for _, wrong := range []string{"", Same(data[1:], Maker(), others), Same(data, "another", others)} {
		a = read()
		a.trust(data, wrong)
		_, err = a.Find(today)
		assert.ErrorIs(t, err, ErrStale)
		_, err = a.Find(all[len(all)-1].Request)
		assert.ErrorIs(t, err, ErrMaker)
	}
}

// TestDamage: a damaged archive is an error, or lacks kernels, or has other texts.
func TestDamage(t *testing.T) {
	data, err := Write("", some())
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 3000 {
		bad := bytes.Clone(data)
		for range 1 + r.IntN(3) {
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		}
		if n%4 == 0 {
			bad = bad[:r.IntN(len(bad))]
		}
		a, err := Read(bad)
		if err != nil {
			assert.ErrorContains(t, err, "make ptx")
			continue
		}
		for _, c := range some() {
			_, _ = a.Find(c.Request)
		}
	}
}

// TestWanted: of functions with constants those values are compiled that a declaration allows.
func TestWanted(t *testing.T) {
	sample.Seldom(t)
	all, sources, err := Wanted()
	require.NoError(t, err)
	values := map[string][]string{}
	for _, r := range all {
		require.NotEmpty(t, sources[r.File])
		if r.Launch == (nvptx.Launch{Values: true}) {
			values[r.Function] = append(values[r.Function], constants(r.Constants))
		}
	}
	for function, want := range map[string][]string{
		"rmsfloat32": {""}, "mlxc_copy_16": {""}, "mlxc_guard": {""}, "mlxc_advance": {""},
		"rope_float32":                 {"1=1 2=1", "1=1"},
		"sdpa_rows_float_64_64":        {"", "22=1"},
		"sdpa_vector_float_96_96":      {"21=1", "21=1 22=1", "", "22=1"},
		"vjp_layer_norm_loopedfloat32": {"", "20=1"},
	} {
		assert.ElementsMatch(t, want, values[function], function)
	}
}

// TestOwn: the archive that is part of the program can be read. Kernels whose source has changed since it was
// made are not found, and compiled where they are needed: that is no error here, and `make ptx` ends it.
func TestOwn(t *testing.T) {
	assert.Less(t, Size(), 10<<20)
	a, err := Own()
	require.NoError(t, err)
	wanted, _, err := Wanted()
	require.NoError(t, err)
	missing := map[string]bool{}
	fresh := 0
	for _, r := range wanted {
		k, err := a.Find(r)
		if err != nil {
			require.True(t, slices.Contains([]error{ErrUnknown, ErrStale, ErrMaker}, err), "%v", err)
			missing[r.Function] = true
			continue
		}
		fresh++
		_, err = nvptx.Early(k.PTX)
		require.NoError(t, err, r.Function)
		target := map[bool]string{false: "\n.target sm_80\n", true: "\n.target sm_90\n"}[r.Launch.Programmatic]
		require.True(t, bytes.Contains(k.PTX, []byte(target)) && bytes.Contains(k.PTX, []byte(".visible .entry "+nvptx.Entry+"(")), r.Function)
		n := 6
		for i := range k.Description.Args {
			if k.Description.Args[i].Attribute == "" {
				n++
			}
		}
		if r.Launch.Moving {
			n += 2
		}
		_, head, _ := strings.Cut(string(k.PTX), ".visible .entry ")
		head, _, _ = strings.Cut(head, "\n)")
		require.Equal(t, n, strings.Count(head, "\n\t.param ."), r.Function)
	}
	t.Logf("%d of %d prebuilt kernels are of today's sources; %d functions have others (`make ptx`)", fresh, len(wanted), len(missing))
}

// TestMade: the archive has of fresh kernels what its clang makes of them, here of one of each kind.
func TestMade(t *testing.T) {
	sample.Seldom(t)
	a, err := Own()
	require.NoError(t, err)
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	if a.Compiler() != fmt.Sprintf("clang %d", c.Version) {
		return // another makes another text of the same meaning
	}
	_, sources, err := Wanted()
	require.NoError(t, err)
	for i, r := range []Request{
		{File: "moves.metal", Function: "mlxc_copy_16"}, {File: "norm.metal", Function: "rmsfloat32"},
		{File: "rope.metal", Function: "rope_single_float32", Constants: []air.ConstantValue{{Index: 1, Bits: 1}}},
	} {
		constants := r.Constants
		r = NewRequest(r.File, sources[r.File], r.Function)
		r.Constants, r.Launch = constants, Launches[i]
		k, err := a.Find(r)
		if err != nil {
			continue // stale: [TestOwn] counts them
		}
		u, err := mslc.Compile(t.Context(), r.File, sources[r.File], mslc.Options{Kernels: []string{r.Function}, Lines: true})
		require.NoError(t, err)
		in, err := r.Input(u)
		require.NoError(t, err)
		text, err := nvptx.Compile(t.Context(), c, in, r.Launch)
		require.NoError(t, err)
		assert.Equal(t, string(text), string(k.PTX), r.Function)
		assert.Equal(t, in.Kernel, k.Description, r.Function)
	}
}
