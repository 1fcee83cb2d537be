package nvptx

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/ptx"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// Entry is the name of the entry of [Compile].
const Entry = "mlxc_kernel"

// WholeThreadgroups is added to the last of an entry's six numbers if every threadgroup of the grid has all
// its threads, a multiple of 32: no thread has to find out then whether it is in the grid, and which of
// its simdgroup are. Where an assembler knows the number, nothing is left of that in the code.
const WholeThreadgroups = 1 << 31

// maxThreads is how many threads a threadgroup has at most.
const maxThreads = 1024

// Launch is how an entry is launched.
type Launch struct {
	// Programmatic asks for an entry for sm_90 that may be launched before the grids that it depends
	// on have ended: those that depend on it may be launched at once, and it waits for those before
	// it prior to its first access to anything but its early arguments ([Early]).
	Programmatic bool
	// Moving gives the entry two more parameters of 64 bits, the last: the address, a multiple of 16, of a
	// table of additions, 8 bytes for each of the other parameters in their order; and a bit for each of
	// them, the first lowest, that is 1 where something is added. What stands there is added to the
	// parameter, modulo its width; to the threads of a threadgroup nothing is. The table is read before the
	// entry waits, so whatever writes it has to end before the launch; without any bit nothing is read. The
	// launched grid may then be larger than that in the parameters: threadgroups that are not in the grid
	// leave at once, before any barrier, and threadgroups_per_grid is counted from the parameters.
	Moving bool
	// Values has the entry get constants by value: in place of the address of one that the kernel
	// refers to, and that has at most 8 bytes ([Arg.ByValue]), 64 bits whose first are the constant's.
	// What a table adds, it adds to all of them.
	Values bool
	// MMA says which products of simdgroup matrices tensor cores make, where all threads of a simdgroup make
	// them together. Sums over the inner index have other bits then: see [MMATerms].
	MMA MMA
}

// MMA is what tensor cores multiply. All else is multiplied by shuffles and fma, in the order of the inner index.
type MMA uint8

// What tensor cores may multiply.
const (
	NoMMA   MMA = iota
	HalfMMA     // matrices of half, and of bfloat, as they are
	AllMMA      // those of float too, as sums of bfloat (mma.go)
)

// MMATerms is how many terms the sum of a product has at least that is made with [Launch.MMA]: what that is
// off is then within what the same number of additions may be.
const MMATerms = 32

// flags choose the oldest GPU that PTX is for, and the language's version.
func (l Launch) flags() []string {
	arch := "-march=sm_80"
	if l.Programmatic {
		arch = "-march=sm_90"
	}
	return []string{"--target=nvptx64-nvidia-cuda", arch, "--cuda-feature=+ptx80"}
}

// Compile compiles a kernel to the text of an entry for NVIDIA's GPUs, [Entry]. Its parameters are:
// for each of the kernel's arguments that is memory, in their order, an address; of a threadgroup
// argument the place in dynamic shared memory, 32 bits, a multiple of 16; then six numbers of 32
// bits, how many threads the grid has, and how many a threadgroup: x, y and z of each, the last with
// [WholeThreadgroups] where that holds; then what the launch asks for.
//
// A threadgroup is a block of as many threads in one dimension; the grid has the threadgroups in
// three. Threads of a threadgroup at the edge that are not in the grid return at once: those of
// the others are numbered as Metal has it, and a simdgroup is a warp.
//
// Denormals are numbers: LLVM would have comparisons of half take them for zero too, where f32's are
// flushed, and Metal's halves have them.
func Compile(ctx context.Context, c clang.Compiler, in air.Input, launch Launch) (_ []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: kernel %s: PTX: %w", in.Name, in.Kernel.Name, err)
		}
	}()
	b, err := air.NewBuilder(ctx, c, &in, launch.flags())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	g, err := newGPUModule(b, in, launch)
	if err != nil {
		return nil, err
	}
	text, err := g.text(launch)
	if err != nil {
		return nil, err
	}
	out, err := b.Clang(text, "ptx.ll", "-O2", "-S")
	if err != nil {
		return nil, err
	}
	m, err := ptx.Parse(out)
	if err != nil || m.Name != Entry {
		return nil, fmt.Errorf("clang has made no entry %s", Entry)
	}
	m.Directives(bounds(in.Kernel, g.known[partsSum])...)
	if launch.Programmatic {
		// A read through .nc may be moved over the wait, as if nothing changed while the entry runs. That
		// holds for the module's own tables only, and from others they cannot be told here.
		m.Replace(func(i int) ([]ptx.Line, bool) {
			l := &m.Lines[i]
			if in := l.Instruction(); in == nil || !strings.HasPrefix(in.Op, "ld.global.nc.") {
				return nil, false
			}
			return []ptx.Line{ptx.NewLine(strings.Replace(l.Text, ".nc.", ".", 1))}, true
		})
	}
	return withEarly(m.Bytes(), g.early, g.reason), nil
}

// Waits says of the entry for a programmatic launch which arguments are early ([Early]), and why it waits
// at its beginning; "" if it does not, or the kernel does not ask for more.
func Waits(ctx context.Context, c clang.Compiler, in air.Input) (early []int, reason string, err error) {
	launch := Launch{Programmatic: true}
	b, err := air.NewBuilder(ctx, c, &in, launch.flags())
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	g, err := newGPUModule(b, in, launch)
	if err != nil {
		return nil, "", fmt.Errorf("%s: kernel %s: PTX: %w", in.Name, in.Kernel.Name, err)
	}
	return g.early, g.reason, nil
}

//go:embed *.go
var ptxOwn embed.FS

// Generator is the digest of what makes PTX of kernels, but for the compiler.
var Generator = sync.OnceValue(func() []byte { return air.Digest(ptxOwn, ptx.Own) })

// Key is the key of what [Compile] makes.
func Key(c clang.Compiler, in air.Input, launch Launch) air.Key {
	return in.Key(c, append(launch.flags(), fmt.Sprintf("denormals %+v", launch)), Generator())
}

// bounds says to an assembler how many threads a block has at most: without that, a kernel may be
// given more registers than so many threads have. Where factors in parts are multiplied, blocks are to share a
// multiprocessor: while one takes factors apart others multiply.
func bounds(k *air.Kernel, parts bool) []string {
	most := maxThreads
	if k.MaxThreadgroup > 0 {
		most = min(most, k.MaxThreadgroup)
	}
	out := []string{fmt.Sprint(".maxntid ", most)}
	if n := partsThreads / most; parts && n > 1 {
		out = append(out, fmt.Sprint(".minnctapersm ", n))
	}
	return out
}

var (
	// secondSpace is the address space of constants, which GPUs of NVIDIA have in another way.
	secondSpace  = regexp.MustCompile(`addrspace\(2\)`)
	secondSuffix = regexp.MustCompile(`(@"?llvm\.[a-z0-9.]*)\.p2\b`)
	// sameSpace is what becomes of a cast from constants to any memory where they are one space.
	sameSpace   = regexp.MustCompile(`addrspacecast( \(?)ptr +([%@][-\w.$"\\]+) to ptr([),\s])`)
	sharedValue = regexp.MustCompile(`(\baddrspace\(3\) (?:global|constant) .*?) (?:zeroinitializer|poison)(, align [0-9]+)?$`)
)
