//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/prebuilt"
	"github.com/mlxc/mlxc/backend/internal/ptxcode"
	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/divergence"
	"github.com/mlxc/mlxc/internal/testing/randomterm"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
)

// Machines with a GPU that run these tests have no compiler. The Metal sources that tests bring are compiled
// elsewhere, to an archive that comes with the test program (scripts/gpu-check.sh build).
var (
	compileTo = flag.String("compile", "", "compile the Metal that the tests bring to this archive, and run no test")
	compiled  = flag.String("kernels", "", "the archive that -compile has made; without it a clang compiles what is needed")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *compileTo != "" {
		if err := compileAll(context.Background(), *compileTo); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ptxmatrix.Fewest, ptxmatrix.FewestStages = 0, 1
	os.Exit(m.Run())
}

// archiveOf is the archive of -kernels; nil: none was given.
var archiveOf = sync.OnceValues(func() (*prebuilt.Archive, error) {
	if *compiled == "" {
		return nil, nil
	}
	data, err := os.ReadFile(*compiled)
	if err != nil {
		return nil, err
	}
	return prebuilt.Read(data)
})

// WithBrought has a device take kernels of the tests' own sources from the archive, if one was given.
func (o Options) WithBrought(t testing.TB) Options {
	t.Helper()
	a, err := archiveOf()
	require.NoError(t, err)
	o.archive = a
	return o
}

// Brought is a Metal source that a test brings, with its kernels and the ways in which they are launched.
type Brought struct {
	File, Source string
	Functions    []string
	Launches     []nvptx.Launch
}

// Foreign returns the kernels that recorded.Runnable puts in place of those that no library has.
func Foreign() Brought {
	file, source, functions := recorded.Foreign()
	return Brought{file, source, functions, prebuilt.Launches}
}

// divergentLaunches are the ways in which kernels with divergent threads are launched.
var divergentLaunches = []nvptx.Launch{{}, {Moving: true}, {Programmatic: true}, {Programmatic: true, Moving: true}, {Values: true}, {Programmatic: true, Moving: true, Values: true}}

// DivergentPrograms is the default number of random kernels with divergent threads.
const DivergentPrograms = 40

// Divergent returns n random kernels whose threads diverge and reconverge, and their source.
func Divergent(n int) ([]*divergence.Program, Brought) {
	random := rand.New(rand.NewPCG(1, 2))
	programs := make([]*divergence.Program, n)
	b := Brought{File: "divergent.metal", Launches: divergentLaunches}
	for i := range programs {
		programs[i] = divergence.Random(fmt.Sprint("divergent", i), random)
		b.Functions = append(b.Functions, programs[i].Name)
	}
	b.Source = divergence.Source(programs)
	return programs, b
}

// generatedTexts is the default number of generated kernels that are compared with clang's.
const generatedTexts = 60

// generatedLaunches are the ways to launch them: all on GPUs of compute capability 9.0 and later, the first two on
// others.
var generatedLaunches = []nvptx.Launch{{}, {Moving: true, Values: true}, {Programmatic: true, Values: true}, {Programmatic: true, Moving: true, Values: true}}

func generatedLaunch(i, major int) nvptx.Launch {
	if major < 9 {
		return generatedLaunches[i%2]
	}
	return generatedLaunches[i%len(generatedLaunches)]
}

// generatedKernels returns the terms of n random generated kernels, and the Metal source of each.
func generatedKernels(n int) (terms []string, all []Brought, err error) {
	r := rand.New(rand.NewPCG(21, 22))
	for i := range n {
		text := randomterm.Elementwise(r)
		k, err := decl.Elementwise(text)
		if err != nil {
			return nil, nil, err
		}
		b := Brought{fmt.Sprintf("generated%d.metal", i), elementwise.Compile(k).Source(), []string{elementwise.Function}, []nvptx.Launch{generatedLaunch(i, 9)}}
		if l := generatedLaunch(i, 8); l != b.Launches[0] {
			b.Launches = append(b.Launches, l)
		}
		terms, all = append(terms, text), append(all, b)
	}
	return terms, all, nil
}

// Compiled returns the kernels by function and launch: from an archive where it has them, otherwise compiled by
// clang.
func (b *Brought) Compiled(ctx context.Context, a *prebuilt.Archive) ([]prebuilt.Compiled, error) {
	out := make([]prebuilt.Compiled, len(b.Functions)*len(b.Launches))
	var missing []int
	for i := range out {
		x := &out[i]
		x.Request = prebuilt.OfFile(b.File, b.Source, b.Functions[i/len(b.Launches)])
		x.Launch = b.Launches[i%len(b.Launches)]
		err := prebuilt.ErrUnknown
		if a != nil {
			x.Kernel, err = a.Find(x.Request)
		}
		if err != nil {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	c, err := clang.Find(ctx)
	if err != nil {
		return nil, fmt.Errorf("%d kernels of %s are not compiled beforehand, or of another state: %w", len(missing), b.File, err)
	}
	u, err := mslc.Compile(ctx, b.File, b.Source, mslc.Options{Lines: true})
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(missing))
	parallel(len(missing), func(i int) {
		x := &out[missing[i]]
		in, err := x.Input(u)
		if err == nil {
			x.Description = in.Kernel
			x.PTX, err = nvptx.Compile(ctx, c, in, x.Launch)
		}
		errs[i] = err
	})
	return out, errors.Join(errs...)
}

// PTX returns the texts by function and launch, from the archive if one was given.
func (b *Brought) PTX(ctx context.Context) (texts [][]byte, err error) {
	a, err := archiveOf()
	if err != nil {
		return nil, err
	}
	all, err := b.Compiled(ctx, a)
	for i := range all {
		texts = append(texts, all[i].PTX)
	}
	return texts, err
}

// allBrought returns the sources of all tests.
func allBrought() ([]Brought, error) {
	_, all, err := generatedKernels(generatedTexts)
	_, part := Divergent(DivergentPrograms)
	return append(all, Foreign(), part), err
}

// compileAll writes the archive. Kernels that are in it already stay if their source has not changed.
func compileAll(ctx context.Context, path string) error {
	c, err := clang.Find(ctx)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("clang %d", c.Version)
	var old *prebuilt.Archive
	if data, err := os.ReadFile(path); err == nil {
		if a, err := prebuilt.Read(data); err == nil && a.Compiler() == name {
			old = a
		}
	}
	all, err := allBrought()
	if err != nil {
		return err
	}
	found := make([][]prebuilt.Compiled, len(all))
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range all {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			found[i], errs[i] = all[i].Compiled(ctx, old)
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var texts []prebuilt.Compiled
	for _, f := range found {
		texts = append(texts, f...)
	}
	data, err := prebuilt.Write(name, texts)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return err
	}
	fmt.Printf("%s: %d kernels of the tests' own, %d bytes\n", path, len(texts), len(data))
	return os.Rename(path+".new", path)
}

// TestBrought: an archive that is given has all kernels that the tests bring, so that no compiler is looked for. It
// needs no GPU: scripts/gpu-check.sh runs it where the archive is made.
func TestBrought(t *testing.T) {
	a, err := archiveOf()
	require.NoError(t, err)
	if a == nil {
		t.Skip("no archive was given (-kernels)")
	}
	t.Setenv(clang.Env, "/nonexistent/clang")
	all, err := allBrought()
	require.NoError(t, err)
	for _, b := range all {
		_, err := b.Compiled(t.Context(), a)
		require.NoError(t, err)
	}
	cache, err := air.OpenCache(filepath.Join(t.TempDir(), "cache"), 0)
	require.NoError(t, err)
	s := ptxcode.New(cache, "")
	s.Beforehand(a)
	seen := map[string]bool{}
	for _, name := range recorded.Names(t) {
		g := recorded.Runnable(t, recorded.Graph(t, name))
		for i := range g.Kernels {
			k := &g.Kernels[i]
			if k.Library.Kind != ir.SourceFile || seen[k.Function] {
				continue
			}
			seen[k.Function] = true
			c, err := s.Find(t.Context(), k)
			require.NoError(t, err, name)
			for _, l := range prebuilt.Launches {
				_, err := c.PTX(t.Context(), l)
				require.NoError(t, err, "%s %+v", name, l)
			}
		}
	}
	require.Len(t, seen, len(Foreign().Functions))
}
