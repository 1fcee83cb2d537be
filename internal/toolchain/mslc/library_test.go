package mslc_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/metallib"
	"github.com/mlxc/mlxc/internal/metallib/bitcode"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/internal/toolchain/mslcheck"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// compiled is one msl/*.metal file, compiled.
type compiled struct {
	file string
	unit *mslc.Unit
	err  error
}

// library compiles sources of the library, once for all tests: the first and an eighth of the others, and of each
// the kernels that software Metal runs plainly. That each kernel's source has the arguments that its
// declaration says is checked, without compiling it, by package mslcheck.
var library = sync.OnceValues(func() ([]*compiled, error) {
	files := sample.Of(quiet{}, "mslc", msl.Files(), sample.Few)
	kernels := map[string][]string{}
	for _, f := range sample.Choose(quiet{}, "plain")(msl.Functions(), func(f string) string {
		return fmt.Sprint(msl.Declarations(f)[0].File, msl.Declarations(f)[0].Line)
	}) {
		file := msl.Declarations(f)[0].File
		kernels[file] = append(kernels[file], f)
	}
	for _, f := range msl.Functions() { // of a source of which the run takes none, one: no names would mean all
		if file := msl.Declarations(f)[0].File; len(kernels[file]) == 0 {
			kernels[file] = []string{f}
		}
	}
	out := make([]*compiled, len(files))
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2) // clang runs at once
	for i, file := range files {
		text, err := msl.Source(file)
		if err != nil {
			return nil, err
		}
		out[i] = &compiled{file: file}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out[i].unit, out[i].err = mslc.Compile(context.Background(), file, text, mslc.Options{Kernels: kernels[file]})
		})
	}
	wg.Wait()
	return out, nil
})

// quiet is a test that nothing is logged for.
type quiet struct{}

func (quiet) Helper()             {}
func (quiet) Logf(string, ...any) {}

// clangAccepts hands a module to clang for code of x86-64, with extra flags.
func clangAccepts(t *testing.T, module string, flags ...string) {
	t.Helper()
	c, err := clang.Find(context.Background())
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "k.ll")
	require.NoError(t, os.WriteFile(file, []byte(module), 0o600))
	args := append([]string{"--target=x86_64-unknown-linux-gnu", "-Wno-override-module", "-O1", "-c", "-o", filepath.Join(dir, "k.o")}, flags...)
	out, err := c.Command(context.Background(), append(args, "-x", "ir", file)...).CombinedOutput()
	var exit *exec.ExitError
	if !assert.NoError(t, err, "%s", out) && assert.ErrorAs(t, err, &exit) {
		t.Log(module[:min(len(module), 4000)])
	}
}

// cast is how a pointer without an address space is made, value a value.
var (
	cast  = regexp.MustCompile(`(%\d+) = addrspacecast`)
	value = regexp.MustCompile(`%\d+`)
)

func TestLibraryBecomesObjects(t *testing.T) {
	sample.Long(t)
	files, err := library()
	require.NoError(t, err)
	for _, f := range files {
		t.Run(f.file, func(t *testing.T) {
			require.NoError(t, f.err)
			require.NotEmpty(t, f.unit.Kernels)
			for i, k := range f.unit.Kernels {
				text, err := f.unit.Module(k.Name)
				require.NoError(t, err)
				assert.Equal(t, 1, strings.Count(text, "\ndefine dso_local void @"+k.Name+"("), k.Name)
				if i == 0 { // the others are compiled and run by the conformance suite, on software Metal
					clangAccepts(t, text)
				}
				generic := map[string]bool{}
				for _, c := range cast.FindAllStringSubmatch(text, -1) {
					generic[c[1]] = true
				}
				for line := range strings.Lines(text) {
					// An address may be asked for as a number, to see how it is aligned.
					if strings.Contains(line, " = ptrtoint ptr ") || cast.MatchString(line) {
						continue
					}
					for _, v := range value.FindAllString(line, -1) {
						assert.False(t, generic[v], "%s: the generic pointer %s is used: %s", k.Name, v, line)
					}
				}
			}
		})
	}
}

// What a kernel's declaration says of its arguments, and what the compiled kernel says.
func TestDescriptionsAreTheDeclarations(t *testing.T) {
	sample.Long(t)
	files, err := library()
	require.NoError(t, err)
	kernels := map[string]air.Kernel{}
	for _, f := range files {
		require.NoError(t, f.err, f.file)
		for _, k := range f.unit.Kernels {
			kernels[k.Name] = k
		}
	}
	declared := map[string]bool{}
	for _, function := range msl.Functions() {
		for _, d := range msl.Declarations(function) {
			declared[d.Name] = true
			k, ok := kernels[d.Name]
			if !ok {
				continue // of another run
			}
			type argument struct {
				slot   int
				name   string
				space  string
				dtype  ir.DType
				access string
			}
			var want, got []argument
			for _, x := range d.Args {
				a := argument{int(x.Slot), x.Name, x.Kind.String(), x.Type, "written"}
				switch x.Mode {
				case decl.Unused:
					a.access = "unused"
				case decl.Read:
					a.access = "read"
				}
				want = append(want, a)
			}
			for _, x := range k.Args {
				if _, ok := d.ArgNamed(x.Name); x.Attribute != "" || x.If != "" && !ok {
					continue
				}
				space := map[air.Space]string{air.Device: "device", air.Constant: "constant", air.Threadgroup: "threadgroup"}[x.Space]
				a := argument{x.Index, x.Name, space, mslcheck.Types[x.Type], "written"}
				switch {
				case x.Unused:
					a.access = "unused"
				case x.Access == air.Read:
					a.access = "read"
				}
				assert.Equal(t, a.dtype.Size(), x.TypeSize, "%s: %s", d.Name, x.Name)
				got = append(got, a)
			}
			assert.Equal(t, want, got, "%s:%d: %s", d.File, d.Line, d.Name)
			// Of the declared function constants a kernel lists those that its code depends on.
			for _, c := range k.Constants {
				i := slices.IndexFunc(d.Constants, func(x decl.Constant) bool { return int(x.Index) == c.Index })
				if assert.GreaterOrEqual(t, i, 0, "%s:%d: %s: function constant %d", d.File, d.Line, d.Name, c.Index) {
					assert.Equal(t, d.Constants[i].Name, c.Name)
					assert.Equal(t, d.Constants[i].Type, mslcheck.Types[c.Type])
				}
			}
		}
	}
	for name := range kernels {
		assert.True(t, declared[name], name)
	}
}

// The parser of compiled libraries reads what is written here as it was meant.
func TestModulesReadAsLibrariesDo(t *testing.T) {
	sample.Long(t)
	files, err := library()
	require.NoError(t, err)
	c, err := clang.Find(context.Background())
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, f.err, f.file)
		k := f.unit.Kernels[0]
		text, err := f.unit.Module(k.Name)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "k.ll")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		bc, err := c.Command(context.Background(), "--target=x86_64-unknown-linux-gnu", "-Wno-override-module", "-O0", "-emit-llvm", "-c", "-x", "ir", file, "-o", "-").Output()
		require.NoError(t, err)
		m, err := bitcode.Read(bc)
		require.NoError(t, err, f.file)
		got, err := metallib.Describe(m)
		require.NoError(t, err, f.file)
		assert.Empty(t, cmp.Diff(&k, got), f.file)
	}
}
