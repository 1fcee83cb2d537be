//go:build linux

package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	replayed "github.com/mlxc/mlxc/internal/testing/traced"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/python"
	"github.com/mlxc/mlxc/ir"
)

// hasMetal is a program that has what the capturing library looks for, as one on a Mac has: the Objective-C runtime and a device of
// Metal. It ends with the exit code that its argument is, and says whether programs that it starts would be captured.
const hasMetal = `#include <stdio.h>
#include <stdlib.h>
static long object[8];
#define PUBLIC __attribute__((visibility("default"), used))
PUBLIC void *objc_msgSend(void) { return object; }
PUBLIC const char *sel_registerName(const char *s) { return s; }
PUBLIC void *object_getClass(void *o) { return o; }
PUBLIC void *class_getInstanceMethod(void *c, const char *s) { (void)c, (void)s; return NULL; }
PUBLIC void *method_setImplementation(void *m, void *code) { (void)m; return code; }
PUBLIC void *method_getImplementation(void *m) { return m; }
PUBLIC const char *method_getTypeEncoding(void *m) { return m; }
PUBLIC int class_addMethod(void *c, const char *s, void *code, const char *types) { (void)c, (void)s, (void)code, (void)types; return 0; }
PUBLIC void *class_getSuperclass(void *c) { (void)c; return NULL; }
PUBLIC void *objc_getClass(const char *s) { (void)s; return NULL; }
PUBLIC void *objc_retain(void *o) { return o; }
PUBLIC void objc_release(void *o) { (void)o; }
PUBLIC void *objc_autoreleasePoolPush(void) { return NULL; }
PUBLIC void objc_autoreleasePoolPop(void *p) { (void)p; }
PUBLIC void *MTLCreateSystemDefaultDevice(void) { return object; }
int main(int argc, char **argv) { printf("captured: %s\n", getenv("MLXC_CAPTURE") ? "again" : "once"); return argc > 1 ? atoi(argv[1]) : 0; }
`

// A program is run with the library in it, also behind a shell; its log stays if it fails, and what has no Metal leaves none.
func TestCapture(t *testing.T) {
	sample.Seldom(t)
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.c"), []byte(hasMetal), 0o600))
	out, err := c.Program(t.Context(), "-O1", "-rdynamic", filepath.Join(dir, "p.c"), "-o", filepath.Join(dir, "program")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	capture := func(args ...string) (string, error) {
		cmd := exec.Command("mlxc", append([]string{"capture", "-o", "log.mlxtrace"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), clang.Env+"="+c.Path)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	log := filepath.Join(dir, "log.mlxtrace")
	text, err := capture("./program")
	require.NoError(t, err, text)
	require.Contains(t, text, "captured: once")
	require.FileExists(t, log)
	require.NoError(t, os.Remove(log))

	text, err = capture("--", "sh", "-c", "./program 3")
	require.Error(t, err)
	require.Contains(t, text, "exit status 3; the log has what it did until then")
	require.FileExists(t, log)
	imported, err := exec.Command("mlxc", "import", log, "-o", filepath.Join(dir, "g.mlxg")).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(imported), "no dispatch was committed")
	require.NoError(t, os.Remove(log))

	text, err = capture("sh", "-c", "exit 0")
	require.Error(t, err)
	require.Contains(t, text, "nothing was captured: it made no device of Metal")
	require.NoFileExists(t, log)
	text, err = capture("nobody-has-this")
	require.Error(t, err)
	require.Contains(t, text, "not found")
	_, err = capture()
	require.Error(t, err)
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A program in Python captures itself with python/mlxc_capture.py, which has mlxc build the library.
func TestPythonCapture(t *testing.T) {
	sample.Seldom(t)
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	interpreter, err := python.Find("ctypes", "mmap")
	require.NoError(t, err)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	program := exec.Command(interpreter, filepath.Join(root, "cmd/testdata/capture/program.py"), fakemetal.Build(t).Path, "log.mlxtrace")
	program.Dir = dir
	program.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "python"), "PYTHONDONTWRITEBYTECODE=1", clang.Env+"="+c.Path)
	text, err := fakemetal.ServeProcess(t, program, 1<<20)
	require.NoError(t, err, text)
	for _, said := range []string{"nothing is captured", "No such file or directory: 'missing/log.mlxtrace'", "the param pos is 4294967296", "this process is captured already"} {
		require.Contains(t, text, said)
	}
	// Its steps, marked with their params, are one graph that computes the program's own numbers, for a param that was not captured too.
	r := replayed.Import(t, filepath.Join(dir, "log.mlxtrace"), trace.Options{})
	require.Len(t, r.Module.Graphs, 1)
	require.Equal(t, "advance", r.Module.Graphs[0].Name)
	require.Len(t, r.Runs, 3)
	d, err := fakemetal.SoftMetal(softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	left := replayed.Replay(t, d, r.Module, append(r.Runs, trace.Run{Graph: "advance", Params: map[string]uint64{"pos": 3}}))
	require.Contains(t, text, "30362 47522 64682 81842\n") // (((x·10 + 7)·11 + 7)·12 + 7)·13 + 7
	require.Equal(t, ir.ValueBytes(uint32(30362), uint32(47522), uint32(64682), uint32(81842)), left[3][0].Data)

	// Of a program that dies all that it has committed is in the log.
	dies := exec.Command(interpreter, append(program.Args[1:], "3")...)
	dies.Dir, dies.Env = program.Dir, program.Env
	_, err = fakemetal.ServeProcess(t, dies, 1<<20)
	require.ErrorContains(t, err, "killed")
	require.Len(t, replayed.Import(t, filepath.Join(dir, "log.mlxtrace"), trace.Options{}).Runs, 2)

	// Without mlxc, and with a file that is no library, it says what to do.
	for set, said := range map[string]string{"MLXC_CAPTURE_LIBRARY=" + program.Path: "", "PATH=" + dir: "set MLXC to it, or MLXC_CAPTURE_LIBRARY"} {
		cmd := exec.Command(interpreter, "-c", "import mlxc_capture; mlxc_capture.start('x')")
		cmd.Env = append(program.Environ(), set)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), said)
	}
}
