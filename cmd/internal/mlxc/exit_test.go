package mlxc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/cli"
)

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	head := "mlxt 1\ngraph g {\n  memory %y output 16\n"
	g := file("g.mlxt", head+"  #0 fill %y[0:16] 0x00\n}\n")
	h := file("h.mlxt", head+"  #0 fill %y[0:16] 0x01\n}\n")
	profile := file("p.json", `{"chip": 1}`)
	out := filepath.Join(dir, "o.mlxg")
	for _, k := range []struct {
		want int
		args []string
	}{
		{cli.OK, []string{"diff", g, g}},
		{cli.Failed, []string{"diff", g, h}},
		{cli.Failed, []string{"diff", g, h, "--json"}},
		{cli.Input, []string{"diff", g, filepath.Join(dir, "nobody")}},
		{cli.OK, []string{"optimize", g, "-o", out}},
		{cli.Usage, []string{"optimize", g, "-o", out, "--chip", "m0"}},
		{cli.Usage, []string{"optimize", g, "-o", out, "--allow", "fma"}},
		{cli.Usage, []string{"optimize", g, "-o", out, "--passes=rename{budget=x}"}},
		{cli.Input, []string{"optimize", g, "-o", out, "--profile", profile}},
		{cli.Usage, []string{"stats", g, "--chip", "m0"}},
		{cli.Usage, []string{"verify", g, g, "--allow", "fma"}},
		{cli.Failed, []string{"verify", g, h}},
	} {
		require.Equal(t, k.want, Main(k.args), "%v", k.args)
	}
}
