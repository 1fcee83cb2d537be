//go:build linux

package softmetal

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/host"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
)

// made is the file that attacking kernels try to create.
const made = "/tmp/mlxc-made-by-a-kernel"

// native compiles C to a shared object, with the flags with which kernels are linked and without any check of the
// code.
func native(t testing.TB, c clang.Compiler, text string, flags ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "abi.h"), []byte(host.ABI), 0o600))
	source, object, out := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.o"), filepath.Join(dir, "a.so")
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	args := append([]string{"-O1", "-fPIC", "-fno-sanitize=undefined", "-fno-stack-protector", "-c", source, "-o", object}, host.MachineFlags("")...)
	if text, err := c.Program(t.Context(), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if text, err := c.Link(t.Context(), append([]string{"-o", out, object}, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	shared, err := os.ReadFile(out)
	require.NoError(t, err)
	return shared
}

// TestAttacks: kernels whose machine code makes system calls, as if no check of their text had taken place, achieve
// nothing: the executor is ended with a reason, and the device stays usable.
func TestAttacks(t *testing.T) {
	sample.Long(t)
	r := newRig(t, Options{Workers: 2, Memory: 256 << 20, Work: time.Second}).metal("faults.metal")
	text, err := os.ReadFile("testdata/attack.c")
	require.NoError(t, err)
	attack := native(t, r.compiler, string(text))
	l, err := r.process.load(t.Context(), object{name: "attack", foreign: true, code: func(context.Context) ([]byte, error) { return attack, nil }})
	require.NoError(t, err)
	r.kernels["attack"] = &kernel{Kernel: &air.Kernel{Name: "attack"}, number: l.number}
	const forbidden = "bad system call (a kernel has called the system, which it must not)"
	attacks := []struct{ name, want string }{
		{"run a shell", forbidden},
		{"open a file", forbidden},
		{"make a file", forbidden},
		{"open a socket", forbidden},
		{"fork", forbidden},
		{"make a thread", forbidden},
		{"trace", forbidden},
		{"signal another", forbidden},
		{"read another", forbidden},
		{"code in memory", forbidden},
		{"code of data", forbidden},
		{"code in a buffer", forbidden},
		{"shared memory", forbidden},
		{"more rights", forbidden},
		{"higher limits", forbidden},
		{"a file in memory", forbidden},
		{"a ring", forbidden},
		{"write to a terminal", forbidden},
		{"end this thread", forbidden},
		{"end the program", "has ended without a word: exit status 0"},
		{"close the channel", "has ended without a word"},
		{"sleep", forbidden},
		{"wait for ever", "the executor hangs: all its threads sleep"},
		{"loop for ever", "taken more than 1s of processor time"},
		{"take all memory", ""}, // allocations fail in the end, and nothing else happens
		{"claim a lot", "what cannot be: it has 4294967280 bytes, where 32 are the most"},
		{"claim nonsense", "what cannot be: its status is 7"},
		{"claim success", "what cannot be: it has 40 bytes, where 32 are the most"},
		{"overwrite code", "an access to memory that is not its own"},
	}
	b, which := r.buffer(make([]byte, 1<<14)), r.buffer(make([]byte, 4))
	for i, a := range attacks {
		t.Run(strings.ReplaceAll(a.name, " ", "_"), func(t *testing.T) {
			clear(b.bytes())
			which.bytes()[0] = byte(i)
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := r.run(ctx, "attack", one, one, b, which)
			if a.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, a.want)
			}
			assert.NotEqual(t, byte(1), b.bytes()[0], "the attack has gone through")
			assert.Less(t, time.Since(start), 15*time.Second) // a second or two, with room for a busy machine
			assert.NoFileExists(t, made)
			clear(b.bytes())
			require.NoError(t, r.run(t.Context(), "increment", one, one, b))
			assert.Equal(t, byte(1), b.bytes()[0])
		})
	}
}

// TestConfined checks how an executor is confined before it runs any kernel: descriptors, privileges, variables.
func TestConfined(t *testing.T) {
	r := newRig(t, Options{Workers: 2}).metal("faults.metal")
	b := r.buffer(make([]byte, 4))
	require.NoError(t, r.run(t.Context(), "increment", one, one, b))
	of := func(file string) string { return filepath.Join("/proc", strconv.Itoa(r.process.runner.Pid()), file) }
	open, err := os.ReadDir(of("fd"))
	require.NoError(t, err)
	assert.Len(t, open, 2, "the channel and the memory")
	status, err := os.ReadFile(of("status"))
	require.NoError(t, err)
	for _, line := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"} {
		assert.Contains(t, string(status), line)
	}
	variables, err := os.ReadFile(of("environ"))
	if err == nil { // only root can read it: the executor is not dumpable (PR_SET_DUMPABLE)
		assert.Empty(t, variables)
	}
	allowed := exec.Command("true")
	allowed.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS}
	if allowed.Run() == nil {
		for _, kind := range []string{"user", "net", "ipc", "uts"} {
			of, err := os.Readlink(of("ns/" + kind))
			require.NoError(t, err)
			own, err := os.Readlink("/proc/self/ns/" + kind)
			require.NoError(t, err)
			assert.NotEqual(t, own, of)
		}
	}
}

// TestNotConfined: where the executor cannot be confined, code from files runs only if the caller trusts it.
func TestNotConfined(t *testing.T) {
	r := newRig(t, Options{Workers: 1})
	r.process.plain = true
	r.metal("faults.metal") // loaded like the code of our own library, which is always trusted
	b := r.buffer(make([]byte, 4))
	require.NoError(t, r.run(t.Context(), "increment", one, one, b))
	shared := native(t, r.compiler, fmt.Sprintf(plainKernel, "(void)g"))
	o := object{name: "of a file", foreign: true, code: func(context.Context) ([]byte, error) { return shared, nil }}
	_, err := r.process.load(t.Context(), o)
	require.ErrorContains(t, err, "cannot be confined here")
	require.ErrorContains(t, err, "--trust-kernels")
	require.NoError(t, r.run(t.Context(), "increment", one, one, b))
	o.foreign = false
	_, err = r.process.load(t.Context(), o)
	require.NoError(t, err)

	// A kernel of a source file is untrusted unless Options.Trust is set.
	k := &ir.Kernel{Function: "increment", Library: ir.Library{Kind: ir.SourceFile, Path: "testdata/faults.metal"}}
	for _, trust := range []bool{false, true} {
		in, err := newRig(t, Options{Trust: trust}).code(t.Context(), k)
		require.NoError(t, err)
		assert.Equal(t, trust, in.Trusted)
	}
}
