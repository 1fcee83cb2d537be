//go:build unix

package softmetal

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/store"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// emulateEnv names the environment variable that makes the tests run code of another machine. It has the machine's
// triple and the command of an emulator (make arm64).
const emulateEnv = "MLXC_EMULATE"

// TestMain gives the tests a cache in the tree's folder for what is built, whose keys are digests of everything that
// a file depends on. It is also the program of TestKilledProgram.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "endless" {
		runEndless()
	}
	store.Use()
	if f := strings.Fields(os.Getenv(emulateEnv)); len(f) > 1 {
		elsewhere.triple, elsewhere.emulator = f[0], f[1:]
	}
	// Tests that change to a temporary folder would not find the clang of the tree.
	if c, err := clang.Find(context.Background()); err == nil {
		os.Setenv(clang.Env, c.Path)
	}
	os.Exit(m.Run())
}

var one = [3]uint32{1, 1, 1}

func long(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// usable checks that b still has the contents before, and that the device still runs kernels.
func usable(t *testing.T, r *rig, b *buffer, before []byte) {
	t.Helper()
	assert.Equal(t, before, b.bytes())
	require.NoError(t, r.run(context.Background(), "increment", [3]uint32{uint32(b.size / 4), 1, 1}, [3]uint32{32, 1, 1}, b))
	for i, w := range wordsOf(b.bytes()) {
		assert.Equal(t, wordsOf(before)[i]+1, w)
	}
}

// TestStray: a kernel that accesses memory outside of its buffers ends with a message that names the nearest argument
// and the distance, and the device stays usable.
func TestStray(t *testing.T) {
	sample.Long(t)
	for _, workers := range []int{1, 3} {
		r := newRig(t, Options{Workers: workers}).metal("faults.metal")
		data := bytesOf([]uint32{1, 2, 3, 4})
		for _, c := range []struct {
			kernel string
			at     int64
			want   string
		}{
			{"store_at", -1, "4 bytes before argument 0, which has 16"},
			{"load_at", -1, "4 bytes before argument 0, which has 16"},
			{"store_at", 4096 / 4, "4080 bytes behind the end of argument 0, which has 16"},
			{"load_at", 4096/4 + 5, "4100 bytes behind the end of argument 0, which has 16"},
			{"store_at", 1 << 36, "an access to memory that is not its own"},
		} {
			b, in := r.buffer(data), r.buffer(data)
			err := r.run(context.Background(), c.kernel, one, one, b, long(c.at), in)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "command 0: "+c.kernel)
			usable(t, r, b, data)
		}
		b := r.buffer(data)
		// An argument that is not bound.
		require.ErrorContains(t, r.run(context.Background(), "load_at", one, one, b, long(0)), "not bound")
		usable(t, r, b, data)
	}
}

// TestEndless: a context ends kernels that run for ever, between two threadgroups or together with the executor, and
// the device stays usable.
func TestEndless(t *testing.T) {
	sample.Long(t)
	r := newRig(t, Options{Workers: 2}).metal("faults.metal")
	b := r.buffer(make([]byte, 4*4))
	before := append([]byte(nil), b.bytes()...)
	mine := errors.New("that is enough")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, mine)
	start := time.Now()
	require.ErrorIs(t, r.run(ctx, "endless", one, one, b), mine)
	cancel()
	assert.Less(t, time.Since(start), killAfter+time.Minute) // with room for a busy machine
	usable(t, r, b, before)

	// With many threadgroups the executor stops by itself, and is not killed.
	many := r.buffer(make([]byte, 4<<16))
	require.NoError(t, r.run(context.Background(), "increment", one, one, many))
	pid := r.process.runner.Pid()
	ctx, cancel = context.WithTimeoutCause(context.Background(), 50*time.Millisecond, mine)
	defer cancel()
	require.ErrorIs(t, r.run(ctx, "slow", [3]uint32{1 << 16, 1, 1}, one, many, uint32(1<<20)), mine)
	require.NoError(t, r.run(context.Background(), "increment", one, one, many))
	assert.Equal(t, pid, r.process.runner.Pid())
}

// TestKilledExecutor: the executor is killed from outside, during a kernel or while no request is pending.
func TestKilledExecutor(t *testing.T) {
	r := newRig(t, Options{Workers: 2}).metal("faults.metal")
	b := r.buffer(bytesOf([]uint32{7, 8, 9, 10}))
	before := append([]byte(nil), b.bytes()...)
	require.NoError(t, r.run(context.Background(), "increment", [3]uint32{4, 1, 1}, one, b))
	copy(b.bytes(), before)
	executor := r.process.runner
	time.AfterFunc(50*time.Millisecond, executor.Kill)
	flag := r.buffer(make([]byte, 4))
	require.ErrorContains(t, r.run(context.Background(), "endless", one, one, flag), "signal: killed")
	usable(t, r, b, before)

	// While no request is pending: the next one, of whatever kind, succeeds.
	kill := func() {
		r.process.runner.Kill()
		<-r.process.ended
	}
	kill()
	c := r.buffer(before)
	usable(t, r, c, before)
	kill()
	other, err := r.Alloc(backend.BufferSpec{Size: 100})
	require.NoError(t, err)
	kill2 := other.Close()
	require.NoError(t, kill2)
	copy(b.bytes(), before)
	usable(t, r, b, before)
	kill()
	r.metal("control.metal") // loads kernels
	copy(b.bytes(), before)
	usable(t, r, b, before)
}

// runEndless is the program of TestKilledProgram: it starts a kernel that runs for ever.
func runEndless() {
	t := &testing.T{}
	d, err := New(context.Background(), Options{Workers: 2, Cache: os.Getenv("CACHE")})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r := &rig{t: t, Device: d, kernels: map[string]*kernel{}, inputs: map[string]air.Input{}}
	r.metal("faults.metal")
	b, err := d.Alloc(backend.BufferSpec{Size: 4})
	if err != nil {
		os.Exit(1)
	}
	if err := r.run(context.Background(), "increment", one, one, b.(*buffer)); err != nil {
		os.Exit(1)
	}
	fmt.Println(r.process.runner.Pid())
	b.(*buffer).bytes()[0] = 0
	_ = r.run(context.Background(), "endless", one, one, b.(*buffer))
	os.Exit(0)
}

// TestKilledProgram: when a program is killed, its executor ends too, even in the middle of a kernel.
func TestKilledProgram(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "endless")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err, line)
	time.Sleep(50 * time.Millisecond) // it runs now
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	executor, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return gone(executor) }, time.Minute, 10*time.Millisecond, "the executor %d lives on", pid)
}

// TestTogether uses a device from many goroutines.
func TestTogether(t *testing.T) {
	r := newRig(t, Options{Workers: 2}).metal("faults.metal")
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 20 {
				made, err := r.Alloc(backend.BufferSpec{Size: int64(4 * (i + 1))})
				if !assert.NoError(t, err) {
					return
				}
				b := made.(*buffer)
				for range 3 {
					assert.NoError(t, r.run(context.Background(), "increment", [3]uint32{uint32(i + 1), 1, 1}, one, b))
				}
				for _, w := range wordsOf(b.bytes()) {
					assert.Equal(t, uint32(3), w)
				}
				assert.NoError(t, b.Close())
			}
		})
	}
	wait.Wait()
}

// TestMemoryLimit: allocations beyond the device's limit fail, and closed buffers do not count.
func TestMemoryLimit(t *testing.T) {
	page := int64(os.Getpagesize())
	d, err := New(context.Background(), Options{Workers: 1, Memory: 4 * page})
	require.NoError(t, err)
	a, err := d.Alloc(backend.BufferSpec{Size: 3*page - 5})
	require.NoError(t, err)
	_, err = d.Alloc(backend.BufferSpec{Size: page + 1})
	require.ErrorContains(t, err, "are left")
	b, err := d.Alloc(backend.BufferSpec{Size: page})
	require.NoError(t, err)
	require.NoError(t, a.Close())
	c, err := d.Alloc(backend.BufferSpec{Size: 2 * page})
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NoError(t, c.Close())
	require.NoError(t, d.Close())
}

// TestClosed: to close a buffer or device twice is no error, and to use it afterwards is one.
func TestClosed(t *testing.T) {
	r := newRig(t, Options{Workers: 1}).metal("faults.metal")
	b := r.buffer(make([]byte, 8))
	require.NoError(t, r.run(context.Background(), "increment", one, one, b))
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	assert.Empty(t, b.Bytes())
	_, err := b.ReadAt(make([]byte, 1), 0)
	assert.ErrorContains(t, err, "after it was closed")
	assert.ErrorContains(t, r.run(context.Background(), "increment", one, one, b), "no buffer")
	late := r.buffer(make([]byte, 8))
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	assert.ErrorContains(t, r.run(context.Background(), "increment", one, one, late), "the device is closed")
	_, err = r.Alloc(backend.BufferSpec{Size: 8})
	assert.Error(t, err)
	_, err = r.process.load(context.Background(), object{name: "nothing"})
	assert.ErrorContains(t, err, "the device is closed")
}

// TestCodeAnew: an executor that is started again asks the cache for the code of every kernel, for the cache may have
// dropped it.
func TestCodeAnew(t *testing.T) {
	r := newRig(t, Options{Workers: 1}).metal("faults.metal")
	b := r.buffer(make([]byte, 8))
	require.NoError(t, r.run(context.Background(), "increment", one, one, b))
	asked := 0
	for i := range r.process.objects {
		o := &r.process.objects[i]
		code := o.code
		o.code = func(ctx context.Context) ([]byte, error) { asked++; return code(ctx) }
	}
	r.process.runner.Kill()
	<-r.process.ended
	require.NoError(t, r.run(context.Background(), "increment", one, one, b))
	assert.Equal(t, uint32(2), wordsOf(b.bytes())[0])
	assert.Equal(t, len(r.process.objects), asked)
}
