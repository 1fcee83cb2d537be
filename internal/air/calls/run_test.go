package calls

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program runs functions of this machine in a child.
type program struct {
	functions []Function
	in        io.Writer
	out       io.Reader
}

// start compiles the functions, each in a loop over arrays, and starts a program that runs
// them. Functions with pointers are not for it. A vector lies as its lanes.
func start(t testing.TB, fs []Function) *program {
	t.Helper()
	text, err := Module(fs, Host)
	require.NoError(t, err)
	var b, table strings.Builder
	b.WriteString(text)
	for i, f := range fs {
		fmt.Fprintf(&b, "define internal void @loop%d(ptr noalias %%in, ptr noalias %%out, i64 %%n) {\nstart:\n", i)
		// Arrays of arguments follow each other.
		offset := "0"
		for j, p := range f.Params {
			ty, err := parseType(p)
			require.NoError(t, err)
			fmt.Fprintf(&b, "  %%b%d = getelementptr i8, ptr %%in, i64 %s\n", j, offset)
			fmt.Fprintf(&b, "  %%s%d = mul i64 %%n, %d\n", j, memory(ty))
			fmt.Fprintf(&b, "  %%o%d = add i64 %s, %%s%d\n", j, offset, j)
			offset = fmt.Sprintf("%%o%d", j)
		}
		b.WriteString("  br label %loop\nloop:\n  %i = phi i64 [ 0, %start ], [ %next, %loop ]\n")
		var operands []string
		for j, p := range f.Params {
			ty, _ := parseType(p)
			fmt.Fprintf(&b, "  %%w%d = mul i64 %%i, %d\n  %%p%d = getelementptr inbounds i8, ptr %%b%d, i64 %%w%d\n", j, memory(ty), j, j, j)
			if ty.elem == "i1" {
				fmt.Fprintf(&b, "  %%l%d = load %s, ptr %%p%d, align 1\n  %%x%d = trunc %s %%l%d to %s\n", j, ty.of("i8"), j, j, ty.of("i8"), j, ty)
			} else {
				fmt.Fprintf(&b, "  %%x%d = load %s, ptr %%p%d, align %d\n", j, ty, j, alignment(ty))
			}
			operands = append(operands, fmt.Sprintf("%s %%x%d", ty, j))
		}
		ty, err := parseType(f.Result)
		require.NoError(t, err)
		fmt.Fprintf(&b, "  %%r = call %s @%s(%s)\n  %%ow = mul i64 %%i, %d\n  %%q = getelementptr inbounds i8, ptr %%out, i64 %%ow\n", ty, f.Name, strings.Join(operands, ", "), memory(ty))
		if ty.elem == "i1" {
			fmt.Fprintf(&b, "  %%rz = zext %s %%r to %s\n  store %s %%rz, ptr %%q, align 1\n", ty, ty.of("i8"), ty.of("i8"))
		} else {
			fmt.Fprintf(&b, "  store %s %%r, ptr %%q, align %d\n", ty, alignment(ty))
		}
		b.WriteString("  %next = add nuw i64 %i, 1\n  %done = icmp eq i64 %next, %n\n  br i1 %done, label %end, label %loop\nend:\n  ret void\n}\n")
		fmt.Fprintf(&table, "%sptr @loop%d", map[bool]string{true: "", false: ", "}[i == 0], i)
	}
	fmt.Fprintf(&b, "@functions = constant [%d x ptr] [%s]\n", len(fs), table.String())

	dir := t.TempDir()
	c := compiler(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "functions.ll"), []byte(b.String()), 0o644))
	harness, err := filepath.Abs("testdata/harness.c")
	require.NoError(t, err)
	target := []string{"-O2"}
	if runtime.GOARCH == "amd64" {
		target = append(target, "-march=x86-64-v3")
	}
	compile := func(args ...string) {
		cmd := c.Command(context.Background(), append(append([]string{"-c", "-Wno-override-module", "-fno-stack-protector"}, target...), args...)...)
		cmd.Dir = dir
		runs(t, cmd)
	}
	compile("functions.ll", "-o", "functions.o")
	compile("-ffreestanding", harness, "-o", "harness.o")
	var link *exec.Cmd
	switch {
	case runtime.GOOS == "linux" && strings.HasSuffix(c.String(), " clang"):
		link = exec.Command(c.Path, "ld.lld", "-static", "harness.o", "functions.o", "-o", "program")
	case runtime.GOOS == "linux":
		link = c.Command(context.Background(), "-nostdlib", "-static", "harness.o", "functions.o", "-o", "program")
	default:
		link = c.Command(context.Background(), "harness.o", "functions.o", "-o", "program")
	}
	link.Dir = dir
	runs(t, link)

	run := exec.Command(filepath.Join(dir, "program"))
	p := &program{functions: fs}
	in, err := run.StdinPipe()
	require.NoError(t, err)
	p.in = in
	p.out, err = run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	t.Cleanup(func() {
		in.Close()
		require.NoError(t, run.Wait())
	})
	return p
}

// memory is how many bytes a value takes in the arrays.
func memory(t typ) int { return alignment(t) * max(1, t.lanes) }

// index is the place of a function.
func (p *program) index(name string) int {
	for i, f := range p.functions {
		if f.Name == name {
			return i
		}
	}
	return -1
}

// run applies a function n times to arrays of arguments, with or without flushing denormals.
func (p *program) run(t testing.TB, name string, n int, flush bool, args ...[]byte) []byte {
	t.Helper()
	i := p.index(name)
	require.GreaterOrEqual(t, i, 0, name)
	f := p.functions[i]
	require.Len(t, args, len(f.Params))
	var in []byte
	for j, a := range args {
		ty, _ := parseType(f.Params[j])
		require.Len(t, a, n*memory(ty))
		in = append(in, a...)
	}
	ty, _ := parseType(f.Result)
	out := make([]byte, n*memory(ty))
	h := uint64(i)
	if flush {
		h |= 1 << 63
	}
	var request []byte
	for _, v := range []uint64{h, uint64(n), uint64(len(in)), uint64(len(out))} {
		request = binary.LittleEndian.AppendUint64(request, v)
	}
	_, err := p.in.Write(append(request, in...))
	require.NoError(t, err)
	_, err = io.ReadFull(p.out, out)
	require.NoError(t, err)
	return out
}

func floatBytes(x ...float32) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func bytesFloat(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}

func TestSmoke(t *testing.T) {
	var fs []Function
	for _, op := range []string{"exp", "log", "sin", "cos", "tan", "tanh", "atan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "log2", "log10", "exp2", "exp10", "rsqrt", "sinpi", "cospi", "tanpi", "round", "fract"} {
		fs = append(fs, Function{"air." + op + ".f32", "float", []string{"float"}})
	}
	for _, op := range []string{"pow", "atan2", "fmod", "fmin", "fmax"} {
		fs = append(fs, Function{"air." + op + ".f32", "float", []string{"float", "float"}})
	}
	p := start(t, fs)
	x := []float32{0.5, -0.5, 1, -1, 2.5, 1e10, -1e30, 1e-30, float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))}
	y := []float32{0.25, 3, -2, 7, 0.5, 1e9, 2, 1e-10, 1, 1, -1}
	for _, f := range fs {
		args := [][]byte{floatBytes(x...), floatBytes(y...)}[:len(f.Params)]
		t.Log(f.Name, bytesFloat(p.run(t, f.Name, len(x), false, args...)))
	}
}
