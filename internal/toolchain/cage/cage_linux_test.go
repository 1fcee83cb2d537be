package cage_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/cage"
)

// shell runs scripts in a folder of their own, next to a secret file that they must not reach.
type shell struct {
	folder, secret string
}

func newShell(t *testing.T) shell {
	t.Helper()
	dir := t.TempDir()
	s := shell{filepath.Join(dir, "own"), filepath.Join(dir, "secret")}
	require.NoError(t, os.Mkdir(s.folder, 0o700))
	require.NoError(t, os.WriteFile(s.secret, []byte("the secret"), 0o600))
	return s
}

func (s shell) job(script string) cage.Job {
	return cage.Job{Path: "/bin/sh", Args: []string{"-c", script}, Folder: s.folder, Executes: []string{"/bin", "/usr/bin"}, Reads: []string{"/bin", "/usr/bin"}}
}

// kinds runs a test in each kind of cage that this system has, and without any: there the script must succeed, or
// else a test would also pass with a script that is wrong.
func kinds(t *testing.T, test func(t *testing.T, kind cage.Kind)) {
	for _, k := range []cage.Kind{cage.None, cage.Landlock, cage.Namespaces} {
		t.Run(k.String(), func(t *testing.T) {
			if err := cage.Has(k); err != nil {
				t.Skip(err)
			}
			defer cage.Pretend(k)()
			test(t, k)
		})
	}
}

func TestKeptIn(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer socket.Close()
	python, _ := exec.LookPath("python3")
	for _, c := range []struct {
		name, script string
		python       bool // the script is in Python
		also         bool // tried in namespaces too, where it takes long
	}{
		{"read outside", "cat $SECRET", false, true},
		{"read by a link", "ln -s $SECRET link && cat link", false, false},
		{"read of an account", "cat /etc/passwd", false, false},
		{"read of other processes", "cat /proc/$PARENT/environ && ls -l /proc/$PARENT/fd/", false, true},
		{"write outside", "echo x > $SECRET", false, true},
		{"write beside", "echo x > $(dirname $SECRET)/new", false, false},
		{"remove outside", "rm $SECRET", false, false},
		{"move outside", "echo x > f && mv f $SECRET", false, false},
		{"link outside", "ln $SECRET hard && cat hard", false, false},
		{"mode outside", "chmod 644 $SECRET", false, false},
		{"execute outside", "$(dirname $SECRET)/program", false, true},
		{"execute what it has written", "cp /bin/true mine && chmod +x mine; ./mine", false, false},
		{"signal to the parent", "kill -0 $PARENT", false, true},
		{"socket", "import socket; socket.create_connection(('127.0.0.1', $PORT), 2)", true, true},
		{"abstract socket", "import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0mlxc-cage-$PARENT')", true, false},
		{"trace of the parent", "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0x4206, $PARENT, 0, 0) != 0)", true, false},
		{"namespaces", "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000) != 0)", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			kinds(t, func(t *testing.T, kind cage.Kind) {
				if kind == cage.Namespaces && !c.also {
					t.Skip("it is the same as another, or is done with what the program may do there anyway")
				}
				s := newShell(t)
				abstract, err := net.Listen("unix", fmt.Sprintf("@mlxc-cage-%d", os.Getpid()))
				require.NoError(t, err)
				defer abstract.Close()
				program, err := os.ReadFile("/bin/true")
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(s.secret), "program"), program, 0o700))
				script := strings.NewReplacer("$SECRET", s.secret, "$PARENT", fmt.Sprint(os.Getpid()), "$PORT", fmt.Sprint(socket.Addr().(*net.TCPAddr).Port)).Replace(c.script)
				j := s.job(script)
				if c.python {
					if python == "" {
						t.Skip("there is no Python")
					}
					j.Path, j.Args = python, []string{"-I", "-S", "-c", script}
				}
				j.Trust = true
				out, err := cage.Run(t.Context(), j)
				if kind == cage.None {
					if os.Getuid() == 0 || !strings.Contains(c.name, "trace") {
						assert.NoError(t, err, "it fails anyway, so this test says nothing")
					}
					return
				}
				var failed *cage.Failed
				require.ErrorAs(t, err, &failed, "it printed %q", out)
				still, err := os.ReadFile(s.secret)
				require.NoError(t, err)
				assert.Equal(t, "the secret", string(still))
			})
		})
	}
}

func TestWhatIsAllowed(t *testing.T) {
	kinds(t, func(t *testing.T, _ cage.Kind) {
		s := newShell(t)
		reads := filepath.Join(filepath.Dir(s.folder), "reads")
		require.NoError(t, os.Mkdir(reads, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(reads, "header"), []byte("text"), 0o600))
		j := s.job("cat ../reads/header; mkdir -p a/b; echo own > a/b/f; mv a/b/f g; cat g; rm -r a; echo $HOME $TMPDIR; echo fine >&2; env | grep -c MLXC_TEST_SECRET")
		t.Setenv("MLXC_TEST_SECRET", "1")
		j.Reads = append(j.Reads, reads, filepath.Join(reads, "nothing"))
		j.Trust = true
		out, err := cage.Run(t.Context(), j)
		var failed *cage.Failed
		require.ErrorAs(t, err, &failed, "grep has found the parent's environment in %q", out)
		assert.Equal(t, "fine", failed.Messages)
		j.Args[1] = strings.TrimSuffix(j.Args[1], "; env | grep -c MLXC_TEST_SECRET")
		out, err = cage.Run(t.Context(), j)
		require.NoError(t, err)
		assert.Equal(t, "textown\n"+s.folder+" "+s.folder+"\n", string(out))
		j.Args[1] = "echo x > " + reads + "/header"
		if kind, _ := cage.Available(); kind != cage.None {
			_, err = cage.Run(t.Context(), j)
			require.ErrorAs(t, err, &failed, "what may be read may not be written")
		}
	})
}

// A program cannot exceed its limits, in any cage and without one.
func TestLimits(t *testing.T) {
	sample.Long(t)
	for _, c := range []struct {
		name, script string
		limits       cage.Limits
		want         string
	}{
		{"clock", "sleep 60", cage.Limits{Time: 200 * time.Millisecond}, "it took longer than 200ms"},
		{"processor", "while :; do :; done", cage.Limits{CPU: time.Second}, "it took more than 1s of a processor"},
		{"memory", "dd if=/dev/zero of=/dev/null bs=1G count=1 || { echo out of memory >&2; exit 1; }", cage.Limits{Memory: 64 << 20}, "it wanted more than 64 MiB of memory"},
		{"file", "while :; do echo 12345678901234567890 || exit 1; done > f", cage.Limits{File: 1 << 20}, "it wrote a file of more than 1048576 bytes"},
		{"output", "while echo 12345678901234567890; do :; done", cage.Limits{Output: 1 << 16}, "it has printed more than 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			kinds(t, func(t *testing.T, kind cage.Kind) {
				switch {
				case c.name == "processor" && kind != cage.Landlock:
					t.Skip("it is set in the same way, and takes a second")
				case c.name == "file" && kind == cage.Namespaces:
					t.Skip("the first process of a namespace gets no signal: this shell then says that there was an I/O error")
				}
				j := newShell(t).job(c.script)
				j.Limits, j.Trust = c.limits, true
				if j.Limits.Time == 0 {
					j.Limits.Time = 20 * time.Second
				}
				began := time.Now()
				_, err := cage.Run(t.Context(), j)
				require.ErrorIs(t, err, cage.ErrLimit)
				assert.ErrorContains(t, err, c.want)
				assert.Less(t, time.Since(began), 15*time.Second)
			})
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	j := newShell(t).job("head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 3")
	j.Trust = true
	_, err := cage.Run(t.Context(), j)
	var failed *cage.Failed
	require.ErrorAs(t, err, &failed)
	assert.Less(t, len(failed.Messages), 300<<10)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 3, exit.ExitCode())
}

// Processes that a program has started end with it, and with the context.
func TestAllEnds(t *testing.T) {
	kinds(t, func(t *testing.T, kind cage.Kind) {
		for _, script := range []string{"sleep 61.5 & sleep 61.5 & echo started > f; exit 0", "sleep 61.5 & echo started > f; sleep 61.5"} {
			s := newShell(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			reason := errors.New("no longer wanted")
			j := s.job(script)
			j.Trust = true
			done := make(chan error)
			go func() {
				_, err := cage.Run(ctx, j)
				done <- err
			}()
			require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(s.folder, "f")); return err == nil }, 10*time.Second, 5*time.Millisecond)
			if !strings.HasSuffix(script, "exit 0") {
				cancel(reason)
				require.ErrorIs(t, <-done, reason)
			} else {
				require.NoError(t, <-done)
			}
			cancel(nil)
			assert.Eventually(t, func() bool { return !running(t, "61.5") }, 5*time.Second, 10*time.Millisecond)
		}
	})
}

// running reports whether a sleep process with an argument runs.
func running(t *testing.T, argument string) bool {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, f := range found {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), "sleep\x00"+argument+"\x00") {
			return true
		}
	}
	return false
}

// A program ends with its parent, even if that is killed and so can end nothing itself.
func TestEndsWithItsParent(t *testing.T) {
	if dir := os.Getenv("MLXC_CAGE_PARENT"); dir != "" {
		j := shell{folder: dir}.job("echo started > f; exec sleep 62.5")
		_, _ = cage.Run(context.Background(), j)
		return
	}
	s := newShell(t)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run=^TestEndsWithItsParent$")
	cmd.Env = append(os.Environ(), "MLXC_CAGE_PARENT="+s.folder)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return running(t, "62.5") }, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
	assert.Eventually(t, func() bool { return !running(t, "62.5") }, 5*time.Second, 5*time.Millisecond)
}

// Without a cage no untrusted job runs, and the error says what to do.
func TestRefused(t *testing.T) {
	defer cage.Pretend(cage.None)()
	s := newShell(t)
	_, err := cage.Run(t.Context(), s.job("echo x > f"))
	require.ErrorIs(t, err, cage.ErrNone)
	assert.ErrorContains(t, err, "--trust-kernels")
	assert.NoFileExists(t, filepath.Join(s.folder, "f"))
}

// The cage ends with the thread that had it: this process stays unconfined.
func TestTheProcessStaysFree(t *testing.T) {
	for range 20 {
		_, err := cage.Run(t.Context(), newShell(t).job(":"))
		require.NoError(t, err)
	}
	for range 50 {
		done := make(chan error)
		go func() {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err == nil {
				err = l.Close()
			}
			done <- err
		}()
		require.NoError(t, <-done)
	}
	// Threads with a cage may not have ended yet.
	assert.Eventually(t, func() bool {
		free := true
		tasks, _ := filepath.Glob("/proc/self/task/*/status")
		for _, task := range tasks {
			status, err := os.ReadFile(task)
			free = free && (err != nil || strings.Contains(string(status), "Seccomp:\t0\n"))
		}
		return free && len(tasks) > 0
	}, 5*time.Second, 5*time.Millisecond)
}

func BenchmarkRun(b *testing.B) {
	for _, k := range []cage.Kind{cage.None, cage.Landlock, cage.Namespaces} {
		b.Run(k.String(), func(b *testing.B) {
			defer cage.Pretend(k)()
			if err := cage.Has(k); err != nil {
				b.Skip(err)
			}
			dir := b.TempDir()
			for b.Loop() {
				if _, err := cage.Run(b.Context(), cage.Job{Path: "/bin/true", Folder: dir, Executes: []string{"/bin", "/usr/bin"}, Trust: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
