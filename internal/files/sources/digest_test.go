package sources

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

func TestAdd(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	var b bytes.Buffer
	Add(&b, fstest.MapFS{"a.go": file("one"), "a_test.go": file("two"), "d/b.ll": file("three")}, fstest.MapFS{"c.go": file("")})
	assert.Equal(t, "a.go 3\noned/b.ll 5\nthreec.go 0\n", b.String())
}
