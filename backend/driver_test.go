package backend_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
)

var toy = backend.Driver{Name: "toy", Options: []backend.Option{
	{Name: "name", Flag: "--name"}, {Name: "fast", Type: backend.Switch}, {Name: "n", Type: backend.Count, Min: 2, Max: 8},
	{Name: "room", Type: backend.Bytes}, {Name: "limit", Type: backend.Duration}, {Name: "from", Type: backend.File},
	{Name: "plan", Type: backend.Choice, Choices: []string{"one", "two"}},
}}

// TestSettings: options have the values that they were given, and zero values without.
func TestSettings(t *testing.T) {
	s, err := toy.With(backend.Given{Option: "name", Value: "a", As: "--name"}, backend.Given{Option: "fast"}, backend.Given{Option: "n", Value: "8"},
		backend.Given{Option: "room", Value: "3MiB"}, backend.Given{Option: "limit", Value: "90s"}, backend.Given{Option: "plan", Value: "two"})
	require.NoError(t, err)
	assert.Equal(t, "a", s.Text("name"))
	assert.True(t, s.On("fast"))
	assert.Equal(t, 8, s.Count("n"))
	assert.Equal(t, int64(3<<20), s.Bytes("room"))
	assert.Equal(t, 90*time.Second, s.Duration("limit"))
	assert.Equal(t, 1, s.Index("plan", "one"))
	assert.True(t, s.Given("n"))
	assert.Equal(t, "--device toy:n", s.Named("n"))
	assert.False(t, s.Given("from"))
	s, err = toy.With()
	require.NoError(t, err)
	assert.Empty(t, s.Text("plan"))
	assert.Equal(t, 1, s.Index("plan", "two"))
	assert.Zero(t, s.Bytes("room"))
	assert.Equal(t, "--name", s.Named("name"), "the flag, if nobody has said it otherwise")
	p, err := s.Profile("from")
	require.NoError(t, err)
	assert.Nil(t, p)
	assert.Panics(t, func() { s.Text("nothing") }, "a mistake of the program")
}

// TestWrongSettings: an error says what was given, and what the option takes.
func TestWrongSettings(t *testing.T) {
	for want, given := range map[string][]backend.Given{
		`device toy has no option "m" (it has name, fast, n, room, limit, from, plan)`:            {{Option: "m", Value: "1"}},
		"--device toy:n is 9, want 2 to 8":                                                        {{Option: "n", Value: "9"}},
		"--device toy:n is x, want 2 to 8":                                                        {{Option: "n", Value: "x"}},
		`--device toy:plan is "three", want one of one, two`:                                      {{Option: "plan", Value: "three"}},
		`--device toy:fast is "perhaps", want true or false`:                                      {{Option: "fast", Value: "perhaps"}},
		`--room: "0" is no size (want bytes, or KiB, MiB, GiB, TiB, as 8GiB)`:                     {{Option: "room", Value: "0", As: "--room"}},
		`--device toy:room: "9000000TiB" is no size (want bytes, or KiB, MiB, GiB, TiB, as 8GiB)`: {{Option: "room", Value: "9000000TiB"}},
		"--device toy:limit is 0s, want a time of more than 0, as 90s or 1h":                      {{Option: "limit", Value: "0s"}},
		"--device toy:name has no value":                                                          {{Option: "name"}},
		"--name and --device toy:name are two ways to say the same: give one of them":             {{Option: "name", Value: "a", As: "--name"}, {Option: "name", Value: "b"}},
	} {
		_, err := toy.With(given...)
		assert.EqualError(t, err, want)
	}
}
