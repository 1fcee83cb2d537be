package cli

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A bar appears on a terminal alone, and once the work has taken half a second; of several graphs each begins anew.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	begin := func(ago time.Duration) *Progress {
		out.Reset()
		return &Progress{w: &out, what: "loading", started: time.Now().Add(-ago)}
	}
	p := begin(0)
	p.Set(0.5)
	p.End()
	assert.Empty(t, out.String(), "it has just begun")
	p = begin(appear)
	p.Set(0.5)
	assert.Contains(t, out.String(), "loading")
	assert.Contains(t, out.String(), "50%")
	p.End()
	assert.Nil(t, p.bar)

	p = begin(appear)
	p.Graph("decode", 0.2)
	assert.NotNil(t, p.bar)
	p.Graph("prefill", 0.1)
	assert.Nil(t, p.bar, "the second graph has just begun")

	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	p = StartProgress(f, "loading")
	p.started = p.started.Add(-appear)
	p.Set(0.5)
	p.End()
	info, err := f.Stat()
	require.NoError(t, err)
	assert.Zero(t, info.Size(), "a file is no terminal")
}
