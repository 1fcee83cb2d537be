package cmd_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/mlxreplay"
)

// TestDrivers: every option of every device says what it is, can be set, and is read as what it is when the device is
// opened; its flag, if it has one, is a flag of the command. Variants set what there is. That there is no GPU here is
// no mistake.
func TestDrivers(t *testing.T) {
	values := map[backend.OptionType]string{
		backend.Text: "nothing", backend.Switch: "", backend.Bytes: "1GiB", backend.Duration: "1h",
		backend.File: filepath.Join(t.TempDir(), "nothing"),
	}
	for _, d := range devices {
		open := func(given ...backend.Given) {
			s, err := d.With(given...)
			if err != nil {
				require.NotContains(t, err.Error(), "has no option")
				return // it needs another option beside it
			}
			on, err := d.Open(t.Context(), s)
			if err == nil {
				assert.Equal(t, d.Name, on.Name())
				require.NoError(t, on.Close())
			}
		}
		for _, o := range d.Options {
			value := values[o.Type]
			switch o.Type {
			case backend.Choice:
				value = o.Choices[0]
			case backend.Count:
				value = "2"
			case backend.File:
				assert.NotEmpty(t, o.Contents, "%s:%s", d.Name, o.Name)
			}
			assert.Regexp(t, `^[A-Z].*\.$`, o.Help, "%s:%s", d.Name, o.Name)
			assert.NotEmpty(t, o.Default, "%s:%s", d.Name, o.Name)
			open(backend.Given{Option: o.Name, Value: value})
			if o.Flag != "" {
				flag := o.Flag
				if value != "" {
					flag += "=" + value
				}
				assert.NoError(t, mlxreplay.Understands([]string{"run", "g.mlxg", flag}), "%s:%s", d.Name, o.Name)
			}
		}
		for _, v := range d.Variants {
			_, err := d.With(v.Set...)
			assert.NoError(t, err, v.Name)
		}
		if d.Learn {
			_, err := d.With(backend.Given{Option: "gpu", Value: "x"}, backend.Given{Option: "profile", Value: "x"})
			assert.NoError(t, err)
		}
	}
}
