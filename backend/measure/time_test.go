package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/backend"
)

// TestAgree: agree notices times that are not on the host's clock.
func TestAgree(t *testing.T) {
	begin := time.Now()
	at := func(from, to time.Duration) backend.Times {
		return backend.Times{Span: backend.Span{Begin: begin.Add(from), End: begin.Add(to)}}
	}
	end := begin.Add(5 * time.Millisecond)
	assert.NoError(t, agree(at(0, 5*time.Millisecond), begin, end))
	assert.NoError(t, agree(backend.Times{}, begin, end))
	assert.ErrorContains(t, agree(at(-time.Second, 5*time.Millisecond), begin, end), "clock")
	assert.ErrorContains(t, agree(at(0, time.Second), begin, end), "clock")
}
