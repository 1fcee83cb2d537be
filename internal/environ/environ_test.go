package environ_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/environ"
)

const name = "MLXC_TEST_OF_ENVIRON"

// Each form reads what it is for, is not set where the variable is empty, and refuses the rest with an
// error that names variable, value and what there is.
func TestForms(t *testing.T) {
	type result struct {
		value any
		set   bool
		err   error
	}
	of := func(value any, set bool, err error) result { return result{value, set, err} }
	forms := map[string]func() result{
		"switch":   func() result { return of(environ.Switch(name)) },
		"choice":   func() result { return of(environ.Choice(name, "one", "two")) },
		"int":      func() result { return of(environ.Int(name, 2, 8)) },
		"duration": func() result { return of(environ.Duration(name)) },
		"list": func() result {
			l, err := environ.List(name, []string{"fuse", "reorder"})
			return result{l, len(l) > 0, err}
		},
	}
	for _, c := range []struct {
		form, text string
		want       any
		err        string
	}{
		{"switch", "1", true, ""}, {"switch", "ON", true, ""}, {"switch", "0", false, ""}, {"switch", "no", false, ""},
		{"switch", "2", nil, `MLXC_TEST_OF_ENVIRON="2": it is one of 0, off, false, no, 1, on, true, yes`},
		{"choice", "two", 1, ""}, {"choice", "three", nil, "one of one, two"},
		{"int", "8", 8, ""}, {"int", "9", nil, "a number from 2 to 8"}, {"int", "x", nil, "a number from 2 to 8"},
		{"duration", "3m", 3 * time.Minute, ""}, {"duration", "0", time.Duration(0), ""}, {"duration", "-1s", nil, "as 90s or 3m"}, {"duration", "soon", nil, "as 90s or 3m"},
		{"list", "reorder, fuse,", []string{"reorder", "fuse"}, ""}, {"list", "fuse,fuze", nil, `there is no "fuze", there are fuse, reorder`},
	} {
		t.Setenv(name, c.text)
		r := forms[c.form]()
		if c.err != "" {
			require.ErrorContains(t, r.err, c.err, c.text)
			require.False(t, r.set)
			continue
		}
		require.NoError(t, r.err)
		require.True(t, r.set)
		require.Equal(t, c.want, r.value, "%s of %q", c.form, c.text)
	}
	t.Setenv(name, "")
	for form, f := range forms {
		r := f()
		require.NoError(t, r.err)
		require.False(t, r.set, form)
	}
}

func TestDebug(t *testing.T) {
	t.Setenv(environ.DebugVariable, "3")
	level, set, err := environ.Debug()
	require.NoError(t, err)
	require.True(t, set)
	require.Equal(t, 3, level)
	t.Setenv(environ.DebugVariable, "4")
	_, _, err = environ.Debug()
	require.ErrorContains(t, err, "a number from 0 to 3")
}
