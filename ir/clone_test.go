package ir_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
)

// dump writes everything that v reaches, private fields too.
func dump(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil ")
			return
		}
		fmt.Fprintf(b, "%s:", v.Elem().Type())
		dump(b, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			dump(b, v.Field(i))
		}
	case reflect.Slice:
		if v.IsNil() {
			b.WriteString("nil ")
			return
		}
		fallthrough
	case reflect.Array:
		fmt.Fprintf(b, "%d[", v.Len())
		for i := range v.Len() {
			dump(b, v.Index(i))
		}
		b.WriteString("] ")
	default:
		fmt.Fprintf(b, "%v ", v) // of a private field too
	}
}

func text(m any) string {
	var b strings.Builder
	dump(&b, reflect.ValueOf(m))
	return b.String()
}

var blobType = reflect.TypeFor[*ir.Blob]()

// spoil changes every number, string and flag that can be reached and set, and
// returns how many. Blobs and the terms of affine expressions are immutable:
// copies may share them.
func spoil(v reflect.Value) int {
	n := 0
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.Type() != blobType && !v.IsNil() {
			n += spoil(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += spoil(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			n += spoil(v.Index(i))
		}
	case reflect.Bool:
		v.SetBool(!v.Bool())
		n++
	case reflect.String:
		v.SetString(v.String() + "!")
		n++
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
		n++
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() + 1)
		n++
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
		n++
	default:
		panic("spoil: " + v.Type().String())
	}
	return n
}

func TestCloneIsDeep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := irtest.Module(t)
		for _, g := range m.Graphs {
			g.Source = &ir.Source{File: "f", Memories: make([]ir.Pos, 3), Nodes: make([]ir.Pos, 2)}
		}
		before := text(m)
		c := m.Clone()
		if got := text(c); got != before {
			t.Fatalf("the copy is\n%s\nof\n%s", got, before)
		}
		if spoil(reflect.ValueOf(c)) == 0 {
			t.Fatal("nothing to spoil")
		}
		if text(c) == before {
			t.Fatal("spoiling the copy does not show")
		}
		if after := text(m); after != before {
			t.Fatalf("changing the copy changed the original from\n%s\nto\n%s", before, after)
		}
	})
}

// Appending to a list of the copy does not change the original.
func TestCloneSharesNoRoom(t *testing.T) {
	m := sound()
	g := m.Graphs[0]
	d := g.Nodes[0].(*ir.Dispatch)
	g.Nodes = append(make([]ir.Node, 0, 100), g.Nodes...)
	d.Bindings = append(make([]ir.Binding, 0, 100), d.Bindings...)
	d.From = append(make([]ir.ID, 0, 100), 1)
	before := text(m)
	c := m.Clone().Graphs[0]
	c.Nodes = append(c.Nodes, &ir.Barrier{})
	e := c.Nodes[0].(*ir.Dispatch)
	e.Bindings = append(e.Bindings, ir.Binding{})
	e.From = append(e.From, 2)
	g.Nodes = append(g.Nodes, &ir.GroupEnd{})
	require.IsType(t, &ir.Barrier{}, c.Nodes[len(c.Nodes)-1])
	g.Nodes = g.Nodes[:len(g.Nodes)-1]
	require.Equal(t, before, text(m))
}

func TestCloneOfNothing(t *testing.T) {
	require.Nil(t, (*ir.Effects)(nil).Clone())
	require.Nil(t, ir.CloneNode(nil))
	require.Equal(t, &ir.Module{}, (&ir.Module{}).Clone())
}
