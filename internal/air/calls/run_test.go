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
	"slices"
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

// emulateEnv names the environment variable that has the tests run code of another machine: its
// triple, and the command of an emulator (make arm64).
const emulateEnv = "MLXC_EMULATE"

// here is the target that the functions run on.
func here() Target {
	if runtime.GOARCH == "arm64" || strings.HasPrefix(os.Getenv(emulateEnv), "aarch64") {
		return ARM64
	}
	return Host
}

// pointee is the type of what a pointer among the parameters points to.
func pointee(t testing.TB, f Function) typ {
	n, err := parseName(f.Name)
	require.NoError(t, err)
	if n.op == "frexp" {
		return n.letter('I')
	}
	return n.t
}

// element is what an array of arguments for the parameter holds.
func element(t testing.TB, f Function, j int) typ {
	ty, err := parseType(f.Params[j])
	require.NoError(t, err)
	if ty.elem == "ptr" {
		return pointee(t, f)
	}
	return ty
}

// thunk makes a function of math.c one that start can call: air.math.NAME. A double is passed
// as its bits.
func thunk(name string, f Function) string {
	m := library()[name]
	var params, operands []string
	convert := ""
	for j, p := range f.Params {
		params = append(params, fmt.Sprintf("%s %%a%d", p, j))
		if p == "i64" {
			convert += fmt.Sprintf("  %%d%d = bitcast i64 %%a%d to double\n", j, j)
			operands = append(operands, fmt.Sprintf("double %%d%d", j))
		} else {
			operands = append(operands, fmt.Sprintf("%s %%a%d", p, j))
		}
	}
	return fmt.Sprintf("%s\ndefine internal %s @%s(%s) {\n%s  %%r = call %s @%s%s(%s)\n  ret %s %%r\n}\n", m.text, f.Result, f.Name, strings.Join(params, ", "), convert, f.Result, prefix, name, strings.Join(operands, ", "), f.Result)
}

// start compiles the functions, each in a loop over arrays, and starts a program that runs
// them. A vector lies as its lanes. A pointer gets a place behind the results, with the value
// that its array of arguments has. Flags are the compiler's.
func start(t testing.TB, fs []Function, flags ...string) *program {
	t.Helper()
	var b, table strings.Builder
	var defined []Function
	var thunks []string
	for _, f := range fs {
		if name, ok := strings.CutPrefix(f.Name, "air.math."); ok {
			for _, d := range library()[name].declares {
				if !slices.Contains(thunks, d) {
					thunks = append(thunks, d)
				}
			}
			thunks = append(thunks, thunk(name, f))
		} else {
			defined = append(defined, f)
		}
	}
	text, err := Module(defined, here())
	require.NoError(t, err)
	b.WriteString(text)
	b.WriteString(strings.Join(thunks, "\n") + "\n")
	for i, f := range fs {
		fmt.Fprintf(&b, "define internal void @loop%d(ptr noalias %%in, ptr noalias %%out, i64 %%n) {\nstart:\n", i)
		// Arrays of arguments follow each other.
		offset := "0"
		for j := range f.Params {
			ty := element(t, f, j)
			fmt.Fprintf(&b, "  %%b%d = getelementptr i8, ptr %%in, i64 %s\n", j, offset)
			fmt.Fprintf(&b, "  %%s%d = mul i64 %%n, %d\n", j, memory(ty))
			fmt.Fprintf(&b, "  %%o%d = add i64 %s, %%s%d\n", j, offset, j)
			offset = fmt.Sprintf("%%o%d", j)
		}
		result, err := parseType(f.Result)
		require.NoError(t, err)
		fmt.Fprintf(&b, "  %%r0 = mul i64 %%n, %d\n", memory(result))
		offset = "%r0"
		for j, p := range f.Params {
			if strings.HasPrefix(p, "ptr") {
				fmt.Fprintf(&b, "  %%m%d = getelementptr i8, ptr %%out, i64 %s\n  %%e%d = add i64 %s, %%s%d\n", j, offset, j, offset, j)
				offset = fmt.Sprintf("%%e%d", j)
			}
		}
		b.WriteString("  br label %loop\nloop:\n  %i = phi i64 [ 0, %start ], [ %next, %loop ]\n")
		var operands []string
		for j, p := range f.Params {
			ty := element(t, f, j)
			fmt.Fprintf(&b, "  %%w%d = mul i64 %%i, %d\n  %%p%d = getelementptr inbounds i8, ptr %%b%d, i64 %%w%d\n", j, memory(ty), j, j, j)
			if ty.elem == "i1" {
				fmt.Fprintf(&b, "  %%l%d = load %s, ptr %%p%d, align 1\n  %%x%d = trunc %s %%l%d to %s\n", j, ty.of("i8"), j, j, ty.of("i8"), j, ty)
			} else {
				fmt.Fprintf(&b, "  %%x%d = load %s, ptr %%p%d, align %d\n", j, ty, j, alignment(ty))
			}
			if strings.HasPrefix(p, "ptr") {
				fmt.Fprintf(&b, "  %%a%d = getelementptr inbounds i8, ptr %%m%d, i64 %%w%d\n  store %s %%x%d, ptr %%a%d, align %d\n", j, j, j, ty, j, j, alignment(ty))
				operands = append(operands, fmt.Sprintf("ptr %%a%d", j))
			} else {
				operands = append(operands, fmt.Sprintf("%s %%x%d", ty, j))
			}
		}
		call := fmt.Sprintf("call %s @%s(%s)", result, f.Name, strings.Join(operands, ", "))
		if result == none {
			fmt.Fprintf(&b, "  %s\n", call)
		} else {
			fmt.Fprintf(&b, "  %%r = %s\n  %%ow = mul i64 %%i, %d\n  %%q = getelementptr inbounds i8, ptr %%out, i64 %%ow\n", call, memory(result))
			v := "%r"
			stored := result
			if result.elem == "i1" {
				stored, v = result.of("i8"), "%rz"
				fmt.Fprintf(&b, "  %%rz = zext %s %%r to %s\n", result, stored)
			}
			fmt.Fprintf(&b, "  store %s %s, ptr %%q, align %d\n", stored, v, alignment(stored))
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
	emulated := strings.Fields(os.Getenv(emulateEnv))
	switch {
	case len(emulated) > 1:
		target = append(target, "--target="+emulated[0])
	case runtime.GOARCH == "amd64":
		target = append(target, "-march=x86-64-v3")
	}
	target = append(target, flags...)
	compile := func(args ...string) {
		cmd := c.Command(context.Background(), append(append([]string{"-c", "-Wno-override-module", "-fno-stack-protector"}, target...), args...)...)
		cmd.Dir = dir
		runs(t, cmd)
	}
	compile("functions.ll", "-o", "functions.o")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "runtime.ll"), []byte(Runtime()), 0o644))
	compile("runtime.ll", "-o", "runtime.o")
	compile("-ffreestanding", harness, "-o", "harness.o")
	var link *exec.Cmd
	switch {
	case runtime.GOOS == "linux" && strings.HasSuffix(c.String(), " clang"):
		link = exec.Command(c.Path, "ld.lld", "-static", "harness.o", "functions.o", "runtime.o", "-o", "program")
	case runtime.GOOS == "linux":
		link = c.Command(context.Background(), "-nostdlib", "-static", "harness.o", "functions.o", "runtime.o", "-o", "program")
	default:
		link = c.Command(context.Background(), "harness.o", "functions.o", "runtime.o", "-o", "program")
	}
	link.Dir = dir
	runs(t, link)

	run := exec.Command(filepath.Join(dir, "program"))
	if len(emulated) > 1 {
		run = exec.Command(emulated[1], append(emulated[2:], run.Path)...)
	}
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
func memory(t typ) int {
	if t == none {
		return 0
	}
	return alignment(t) * max(1, t.lanes)
}

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
// It returns the results and, behind them, what lies where the pointers point.
func (p *program) run(t testing.TB, name string, n int, flush bool, args ...[]byte) []byte {
	t.Helper()
	i := p.index(name)
	require.GreaterOrEqual(t, i, 0, name)
	f := p.functions[i]
	require.Len(t, args, len(f.Params))
	var in []byte
	result, _ := parseType(f.Result)
	out := n * memory(result)
	for j, a := range args {
		require.Len(t, a, n*memory(element(t, f, j)))
		in = append(in, a...)
		if strings.HasPrefix(f.Params[j], "ptr") {
			out += len(a)
		}
	}
	h := uint64(i)
	if flush {
		h |= 1 << 63
	}
	var request []byte
	for _, v := range []uint64{h, uint64(n), uint64(len(in)), uint64(out)} {
		request = binary.LittleEndian.AppendUint64(request, v)
	}
	_, err := p.in.Write(append(request, in...))
	require.NoError(t, err)
	results := make([]byte, out)
	_, err = io.ReadFull(p.out, results)
	require.NoError(t, err)
	return results
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
