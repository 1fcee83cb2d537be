//go:build linux

package softmetal

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// plainKernel is the C source of a kernel, with %s for its statements.
const plainKernel = `
#include "abi.h"
static void row(const struct group *g, uint32_t y, uint32_t z) { %s; }
const struct kernel mlxc_kernel = {0, row, 0, 0, 0, 0, 0, 0, 0};
`

// TestImages: shared objects that are more than code and constants are refused before the executor sees them.
func TestImages(t *testing.T) {
	r := newRig(t, Options{Workers: 1})
	for _, c := range []struct {
		name, text string
		flags      []string
		want       string
	}{
		{"plain", `int x;`, nil, ""},
		{"memset", `for (int i = 0; i < 1000; i++) ((volatile char **)g->buffers)[0][i] = 0; extern void *memset(void *, int, unsigned long); memset(g->buffers[0], 0, 8)`, nil, ""},
		{"library", `extern int system(const char *); system("true")`, nil, "it calls system, which no kernel has"},
		{"variable", `extern char **environ; *(void **)g->buffers[0] = environ`, nil, "it calls environ, which no kernel has"},
		{"constructor", `int x; } static __attribute__((constructor)) void before(void) { *(volatile int *)0 = 1`, nil, "DT_INIT_ARRAY"},
		{"destructor", `int x; } static __attribute__((destructor)) void after(void) { *(volatile int *)0 = 1`, nil, "DT_FINI_ARRAY"},
		{"init", `int x; } void start(void) { *(volatile int *)0 = 1`, []string{"-init", "start"}, "DT_INIT"},
		{"thread's own", `static __thread int x; x++; *(int *)g->buffers[0] = x`, []string{"--no-relax"}, "segment of kind PT_TLS"},
		{"chosen when loaded", `int x; } static void *choose(void) { return *(void *volatile *)0; } void chosen(void) __attribute__((ifunc("choose"))); void (*const volatile use)(void) = chosen; void more(void) { use()`, nil, "chosen is chosen when it is loaded"},
		{"written and executed", `static volatile int x = 1; x++`, []string{"-N"}, "both written and executed"},
	} {
		shared := native(t, r.compiler, fmt.Sprintf(plainKernel, c.text), c.flags...)
		_, err := newImage(shared, uint64(os.Getpagesize()))
		if c.want == "" {
			require.NoError(t, err, c.name)
			_, err := r.process.load(t.Context(), object{name: c.name, foreign: true, code: func(context.Context) ([]byte, error) { return shared, nil }})
			require.NoError(t, err, c.name)
			continue
		}
		require.ErrorContains(t, err, c.want, c.name)
	}
}

// FuzzImage: newImage refuses a malformed file, and never returns an image with addresses outside of it.
func FuzzImage(f *testing.F) {
	c, err := clang.Find(context.Background())
	require.NoError(f, err)
	f.Add(native(f, c, fmt.Sprintf(plainKernel, "(void)g")))
	f.Fuzz(func(t *testing.T, object []byte) {
		m, err := newImage(object, 4096)
		if err != nil {
			return
		}
		assert.LessOrEqual(t, m.size, uint64(maxImage))
		for _, x := range m.fixes {
			assert.True(t, m.holds(x.at, 8, true))
			assert.LessOrEqual(t, int(x.imported), len(imports))
		}
		assert.True(t, m.holds(m.kernel, kernelBytes, false))
	})
}
