package mslcheck_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/mslcheck"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// family is one msl/*.metal file, checked.
type family struct {
	file, source string
	lib          *mslcheck.Library
	err          error
	decls        []*decl.Decl
}

// families checks half of the sources of the library, once for all tests, each with a sample of the instances of its templates.
var families = sync.OnceValues(func() ([]*family, error) {
	files := sample.Of(logged{}, "files of mslcheck", msl.Files(), 2)
	out := make([]*family, len(files))
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)                                                       // clang runs at once
	sizes := regexp.MustCompile(`b?float(16|32)?(_t)?|_gs_\d+|_b_\d+|_bk\d+_bd\d+_bv\d+`) // by which instances of a template differ
	chosen := sample.Kernels(logged{}, "mslcheck", msl.Functions(), func(f string) string { return sizes.ReplaceAllString(f, "") })
	for i, file := range files {
		text, err := msl.Source(file)
		if err != nil {
			return nil, err
		}
		out[i] = &family{file: file, source: msl.Only(text, chosen)}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out[i].lib, out[i].err = mslcheck.Check(context.Background(), out[i].file, out[i].source)
		})
	}
	wg.Wait()
	for _, function := range chosen {
		ds := msl.Declarations(function)
		if i := slices.Index(files, ds[0].File); i >= 0 {
			out[i].decls = append(out[i].decls, ds...)
		}
	}
	return out, nil
})

// logged says which sample all tests share, which no one test does.
type logged struct{}

func (logged) Helper()                         {}
func (logged) Logf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func library(t *testing.T) []*family {
	t.Helper()
	fs, err := families()
	require.NoError(t, err)
	for _, f := range fs {
		require.NoError(t, f.err, f.file)
	}
	return fs
}

// TestSources checks that clang accepts each source, and that its declarations are
// those of its kernels.
func TestSources(t *testing.T) {
	sample.Long(t)
	fs, err := families()
	require.NoError(t, err)
	for _, f := range fs {
		t.Run(f.file, func(t *testing.T) {
			require.NoError(t, f.err)
			assert.NotEmpty(t, f.lib.Kernels)
			for _, err := range f.lib.Compare(f.file, f.source, f.decls) {
				t.Error(err)
			}
		})
	}
}

// signature is a line of testdata/msl/mlx-0.32.4-signatures.tsv.
type signature struct {
	args        []mlxArgument
	threadgroup int64
	threads     int64
	constants   []string
}

type mlxArgument struct {
	Slot      int
	Access    string // r or rw
	Space     string
	Type      string
	Size      string // "*", or "#bytes"
	Name      string
	Unused    bool
	condition string
}

func signatures(t *testing.T) map[string]signature {
	t.Helper()
	b, err := os.ReadFile("../../../testdata/msl/mlx-0.32.4-signatures.tsv")
	require.NoError(t, err)
	out := map[string]signature{}
	form := regexp.MustCompile(`^(\d+):(r|rw/w|rw):([dct]):([\w:]+)(\*|#\d+):(\w+)(!?)(?:\?(\w+))?$`)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		require.Len(t, f, 5, line)
		var s signature
		for _, c := range strings.Fields(f[4]) {
			of, in, _ := strings.Cut(c, ":")
			s.constants = append(s.constants, fmt.Sprint(of, ":", mslcheck.Types[in]))
		}
		s.threadgroup, err = strconv.ParseInt(f[2], 10, 64)
		require.NoError(t, err, line)
		if f[3] != "" {
			s.threads, err = strconv.ParseInt(f[3], 10, 64)
			require.NoError(t, err, line)
		}
		for _, a := range strings.Fields(f[1]) {
			m := form.FindStringSubmatch(a)
			require.NotNil(t, m, "%s: %s", f[0], a)
			slot, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			access, _, _ := strings.Cut(m[2], "/")
			s.args = append(s.args, mlxArgument{
				Slot: slot, Access: access, Space: map[string]string{"d": "device", "c": "constant", "t": "threadgroup"}[m[3]],
				Type: m[4], Size: m[5], Name: m[6], Unused: m[7] != "", condition: m[8],
			})
		}
		out[f[0]] = s
	}
	return out
}

// unlisted is the argument of an @mlx line of a kernel that the table lacks, with all
// that have its arguments.
const unlisted = "unlisted"

// otherMemory are the functions some of whose threadgroup variables have other bytes than those of
// MLX's kernels of the same name, and how many. A dispatch of MLX's kernel stays one of ours
// as long as all threadgroup memory of it fits the 32 KiB of Apple's GPUs: these take none
// as an argument, which the test checks, so their own is all there is.
var otherMemory = map[string]int64{
	// Each simdgroup adds the sums of all up for itself, so that one barrier makes a sum:
	// no thread leaves 1/√ in memory for the others, 4 bytes.
	"rms": 128, "rms_looped": 128,
	// Tiles are widened before they are multiplied, once for all simdgroups: those of 16 bits are as large as of f32.
	"qmm_t": 9216,
	// Each thread makes its results alone.
	"qmm_n": 0, "qmm_batch": 0, "gather_qmm": 0,
	// Lanes share a query, and read keys and values where they lie.
	"attention": 0,
	// Simdgroups read keys and values where they lie.
	"sdpa_vector_2pass_1_gqa": 0,
	// The second sum has memory of its own: in that of the first, which simdgroups may
	// still read, it would need another barrier.
	"layer_norm": 256, "layer_norm_looped": 256, "vjp_layer_norm": 512, "vjp_layer_norm_looped": 512,
}

func TestSignaturesMatchMLX(t *testing.T) {
	sample.Long(t)
	table := signatures(t)
	compared, twins := 0, 0
	others := map[string]bool{}
	for _, f := range library(t) {
		byName := map[string][]*decl.Decl{}
		for _, d := range f.decls {
			byName[d.Name] = append(byName[d.Name], d)
		}
		for _, k := range f.lib.Kernels {
			ds := byName[k.Host]
			if len(ds) == 0 {
				continue // another test says so
			}
			d := ds[0]
			s, ok := table[k.Host]
			if !d.MLX {
				assert.False(t, ok, "%s:%d: MLX has a kernel %s: give the declaration a line @mlx, or the kernel another name", d.File, d.Line, k.Host)
				continue
			}
			if !ok && d.MLXLike == unlisted {
				continue
			}
			if !ok {
				twins++
				s, ok = table[d.MLXLike]
				require.True(t, ok, "%s:%d: @mlx: the table of signatures has neither %s nor %q: say @mlx NAME with a kernel of MLX that it has and whose arguments are the same, @mlx unlisted if there is none, or delete the line if the kernel is no kernel of MLX", d.File, d.Line, k.Host, d.MLXLike)
			}
			t.Run(k.Host, func(t *testing.T) {
				var want []mlxArgument
				for _, a := range s.args {
					if a.condition != "" {
						// A declaration has the argument, or requires its constant to be false.
						present := false
						for _, d := range byName[k.Host] {
							_, has := d.ArgNamed(a.Name)
							assert.NotEqual(t, has, requires(d, a.condition, 0), "%s:%d: %s is there if %s", d.File, d.Line, a.Name, a.condition)
							assert.Equal(t, has, requires(d, a.condition, 1), "%s:%d: %s is there if %s", d.File, d.Line, a.Name, a.condition)
							present = present || has
						}
						if !present {
							continue
						}
					}
					if of, ok := structs[a.Type]; ok {
						a.Type, a.Size = of[0], of[1]
					}
					want = append(want, a)
				}
				var got []mlxArgument
				for _, p := range k.Params {
					a := mlxArgument{
						Slot: p.Slot, Access: "rw", Space: p.Space, Type: p.Type, Size: "*", Name: p.Name, Unused: !p.Used, condition: p.If,
					}
					if p.Const {
						a.Access = "r"
					}
					if p.Count > 0 {
						a.Size = fmt.Sprint("#", p.Count*mslcheck.Types[p.Type].Size())
					}
					got = append(got, a)
				}
				assert.Empty(t, cmp.Diff(want, got, cmp.AllowUnexported(mlxArgument{})), "MLX -, ours +")
				memory := s.threadgroup
				if n, ok := otherMemory[k.Function]; ok {
					others[k.Function] = others[k.Function] || memory != n
					for _, p := range k.Params {
						assert.NotEqual(t, "threadgroup", p.Space, "%s takes threadgroup memory: what a dispatch may give it depends on the kernel's own", p.Name)
					}
					memory = n
				}
				assert.Equal(t, memory, k.ThreadgroupBytes, "bytes of threadgroup variables")
				assert.Equal(t, s.threads, k.MaxThreads, "maximum of threads")
				for _, d := range byName[k.Host] {
					var constants []string
					for _, c := range d.Constants {
						constants = append(constants, fmt.Sprintf("%s=%d:%s", c.Name, c.Index, c.Type))
					}
					assert.ElementsMatch(t, s.constants, constants)
				}
			})
			compared++
		}
	}
	if !sample.Whole() {
		assert.Greater(t, compared, len(table)/16, "of %d lines of the table", len(table))
		return
	}
	for function := range otherMemory {
		assert.True(t, others[function], "bytes of threadgroup variables are MLX's, or nothing is compared: delete %s from otherMemory", function)
	}
	assert.Equal(t, len(table), compared-twins, "lines of the table are kernels of ours")
	t.Logf("%d kernels by their twins", twins)
}

// structs are MLX's structs of constants, and the arrays that our kernels take in their places.
var structs = map[string][2]string{"mlx::steel::AttnParams": {"int", "#152"}, "mlx::steel::AttnMaskParams": {"long", "#24"}}

// requires reports whether a @require of d says NAME == value.
func requires(d *decl.Decl, name string, value int64) bool {
	var says func(e *term.Expr) bool
	says = func(e *term.Expr) bool {
		switch e.Op {
		case term.And:
			return says(e.Args[0]) || says(e.Args[1])
		case term.Eq:
			return e.Args[0].Op == term.Symbol && e.Args[0].Name == name && e.Args[1].Op == term.Number && e.Args[1].Num == value
		}
		return false
	}
	return slices.ContainsFunc(d.Requires, says)
}
