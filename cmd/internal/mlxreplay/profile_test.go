package mlxreplay

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
)

// blind is a device that takes no times of commands.
type blind struct{ *testdevice.Device }

func (blind) Close() error { return nil }

// A device that takes no times of commands is measured by ablation, and that is said; who asks for times of commands hears that
// there are none.
func TestProfileWithoutTimes(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("g.mlxt"), []byte(`mlxt 1
graph g {
  memory %x input 65536
  memory %s scratch 65536
  memory %y output 65536
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @mul builtin "vv_Multiplyfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  #0 @add (a = %x[0:65536], b = %x[0:65536], c = %s[0:65536]) grid threads [16384, 1, 1] of [256, 1, 1]
  barrier
  #1 @mul (a = %s[0:65536], b = %x[0:65536], c = %y[0:65536]) grid threads [16384, 1, 1] of [256, 1, 1]
}
`), 0o600))
	devices := []backend.Driver{cpu.Driver, {Name: "blind", Open: func(context.Context, backend.Settings) (backend.Closer, error) {
		return blind{testdevice.New(cpu.New(1), testdevice.Options{Sampling: backend.SampleNothing})}, nil
	}}}
	run := func(args ...string) int {
		return Main(append([]string{"profile", at("g.mlxt"), "--rounds", "2", "--device", "blind"}, args...), devices...)
	}
	require.Equal(t, cli.OK, run("--html", at("p.html"), "--trace", at("t.json")))
	page, err := os.ReadFile(at("p.html"))
	require.NoError(t, err)
	for _, want := range []string{`"by":"ablation"`, "times of kernels are by ablation", "vv_Multiplyfloat32"} {
		assert.Contains(t, string(page), want)
	}
	trace, err := os.ReadFile(at("t.json"))
	require.NoError(t, err)
	assert.Contains(t, string(trace), "times of kernels are by ablation")
	assert.NotContains(t, string(trace), `"cat":"command","ph":"X","pid":1`)
	assert.Equal(t, cli.Usage, run("--by", "commands"))
	assert.Equal(t, cli.Input, run("--write", at("p.json")))
	assert.NoFileExists(t, at("p.json"))
}
