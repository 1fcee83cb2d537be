package prebuilt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestPack: what is unpacked is what was packed, and texts that repeat what stood far before become small.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 60), 1, 6).Draw(t, "words")
		var text []byte
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(words)-1), 0, 60).Draw(t, "order") {
			text = append(text, words[i]...)
		}
		data, err := pack(text)
		require.NoError(t, err)
		got, err := unpack(data, len(text))
		require.NoError(t, err)
		require.True(t, bytes.Equal(text, got))
	})
	r := rand.New(rand.NewPCG(1, 2))
	one := make([]byte, 100_000)
	for i := range one {
		one[i] = byte(r.Uint32())
	}
	text := bytes.Repeat(one, 3)
	data, err := pack(text)
	require.NoError(t, err)
	assert.Less(t, len(data), len(one)+1000)
	got, err := unpack(data, len(text))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(text, got))
}

// TestUnpackDamaged: damage is an error or another text of the same size.
func TestUnpackDamaged(t *testing.T) {
	var text []byte
	for i := range 300 {
		text = fmt.Appendf(text, "add.s32 %%r%d, %%r%d, 1; a line that is the same but for its numbers\n", i%7, i)
	}
	data, err := pack(text)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 2000 {
		bad := bytes.Clone(data)
		for range 1 + r.IntN(3) {
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		}
		if n%4 == 0 {
			bad = bad[:r.IntN(len(bad))]
		}
		if got, err := unpack(bad, len(text)); err == nil {
			assert.Len(t, got, len(text))
		}
	}
	_, err = unpack(data, len(text)-1)
	assert.ErrorIs(t, err, errPacked)
}
