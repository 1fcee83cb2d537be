//go:build linux

package fakemetal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// TestMishear: each alteration changes the message that it names, and no other.
func TestMishear(t *testing.T) {
	const (
		encoder  = "MTLComputeCommandEncoder"
		buffer   = "setBuffer:offset:atIndex:"
		dispatch = "dispatchThreads:threadsPerThreadgroup:"
	)
	right, asWas := []uint32{22, 37, 52, 67, 5, 6}, []uint32{1, 2, 3, 4, 5, 6}
	for name, c := range map[string]struct {
		fakemetal.Mishearing
		misheard int
		x        []uint32 // the result
		wrong    string   // the mistake that is noted; "": none
	}{
		"nothing":        {fakemetal.Mishearing{}, 0, right, ""},
		"another class":  {fakemetal.Mishearing{Class: "MTLBuffer", Selector: dispatch, How: fakemetal.Drop}, 0, right, ""},
		"beyond":         {fakemetal.Mishearing{Selector: dispatch, Nth: 3, How: fakemetal.Drop}, 0, right, ""},
		"dropped":        {fakemetal.Mishearing{Class: encoder, Selector: dispatch, Nth: 1, How: fakemetal.Drop}, 1, []uint32{7, 12, 17, 22, 5, 6}, ""},
		"all dropped":    {fakemetal.Mishearing{Selector: dispatch, How: fakemetal.Drop}, 2, asWas, ""},
		"twice":          {fakemetal.Mishearing{Selector: dispatch, Nth: 1, How: fakemetal.Twice}, 1, []uint32{67, 112, 157, 202, 5, 6}, ""},
		"more":           {fakemetal.Mishearing{Selector: buffer, Nth: 2, How: fakemetal.Add, Arg: 1, By: 8}, 1, []uint32{1, 2, 52, 67, 82, 97}, ""},
		"nil":            {fakemetal.Mishearing{Selector: buffer, Nth: 2, How: fakemetal.Set}, 1, asWas, "argument 0 (x) is not bound"},
		"what was":       {fakemetal.Mishearing{Selector: buffer, Nth: 2, How: fakemetal.Before}, 1, asWas, ""},
		"nothing was":    {fakemetal.Mishearing{Selector: buffer, Nth: 1, How: fakemetal.Before}, 0, right, ""},
		"size":           {fakemetal.Mishearing{Selector: dispatch, Nth: 2, How: fakemetal.Size, By: -1}, 1, []uint32{22, 37, 52, 13, 5, 6}, ""},
		"bytes":          {fakemetal.Mishearing{Selector: "setBytes:length:atIndex:", Nth: 2, How: fakemetal.Bytes, At: 4, By: 9}, 1, []uint32{31, 46, 61, 76, 5, 6}, ""},
		"other selector": {fakemetal.Mishearing{Class: encoder, Selector: "setLabel:", How: fakemetal.Rename, As: "popDebugGroup"}, 1, right, "no debug group is open"},
		"left out":       {fakemetal.Mishearing{Selector: "useResources:count:usage:", How: fakemetal.Omit, At: 1}, 1, right, ""},
		"leak":           {fakemetal.Mishearing{Class: "MTLFunction", Selector: "objc_release", How: fakemetal.Drop}, 1, right, "1 MTLFunction leak"},
	} {
		t.Run(name, func(t *testing.T) {
			l := run(t, fakemetal.Options{}, func(e *engine) {
				e.Count()
				if c.How != 0 {
					e.Mishear(c.Mishearing)
				}
				p := e.pipeline("advance")
				x, y := e.buffer(true, asWas...), e.buffer(true, asWas...)
				b := e.commandBuffer()
				k := e.encoder(b, false)
				objc.SetEncoderLabel.Send(k, uintptr(objc.String("steps")))
				list := [2]objc.ID{x, y}
				at(&list, func(p uintptr) { objc.UseResources.Send(k, p, 2, uintptr(objc.ResourceUsageRead)) })
				objc.SetPipeline.Send(k, uintptr(p))
				objc.SetBuffer.Send(k, uintptr(y), 0, 0)
				objc.SetBuffer.Send(k, uintptr(x), 0, 0)
				for _, f := range [][2]uint32{{3, 1}, {5, 2}} {
					setBytes(k, 1, f)
					threads(k, size{4, 1, 1}, size{4, 1, 1})
				}
				objc.EndEncoding.Send(k)
				assert.NoError(t, finish(b))
				assert.Equal(t, c.x, e.words(x))
				assert.Equal(t, c.misheard, e.Misheard())
				if c.How == 0 {
					assert.Contains(t, e.Counted(), fakemetal.Heard{Class: encoder, Selector: dispatch, Count: 2})
				}
			})
			got := l.Failures()
			if c.wrong == "" {
				assert.Empty(t, got)
			} else if assert.NotEmpty(t, got) {
				assert.Contains(t, got[0], c.wrong)
			}
		})
	}
}
