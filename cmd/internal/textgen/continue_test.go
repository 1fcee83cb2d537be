package textgen_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestContinue checks that a prompt that begins with all that the states hold continues
// them and gives the same tokens, and that any other prompt starts with empty states.
func TestContinue(t *testing.T) {
	sample.Long(t)
	m := openModel(t, recordModel(t, false))
	first := oracle(t)[0].PromptIDs
	run := func(prompt []int32, carryOn bool) *textgen.Result {
		r, err := m.Generate(t.Context(), prompt, textgen.Options{N: 4, IgnoreEnd: true, Continue: carryOn})
		require.NoError(t, err)
		return r
	}
	a := run(first, true)
	assert.Zero(t, a.Kept, "there was nothing before")
	held := append(slices.Clone(first), a.IDs[:3]...) // the last token was not run
	next := append(slices.Clone(held), a.IDs[3], first[0], first[1])

	fresh := run(next, false)
	assert.Zero(t, fresh.Kept)
	require.Equal(t, a.IDs, run(first, false).IDs)
	kept := run(next, true)
	assert.Equal(t, len(held), kept.Kept)
	assert.Equal(t, fresh.IDs, kept.IDs)

	changed := slices.Clone(next)
	changed[1] = first[0]
	assert.Zero(t, run(changed, true).Kept, "another beginning")
	assert.Zero(t, run(first, true).Kept, "a shorter one")
	run(first, false)
	assert.Zero(t, run(held, true).Kept, "nothing new: the last logits are gone")

	// A run that was aborted leaves unknown states.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run(first, false)
	_, err := m.Generate(ctx, next, textgen.Options{N: 1, Continue: true})
	require.ErrorIs(t, err, context.Canceled)
	again := run(next, true)
	assert.Zero(t, again.Kept)
	assert.Equal(t, fresh.IDs, again.IDs)
}
