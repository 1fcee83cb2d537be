package metallib

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/metallib/bitcode"
)

// keys is a position in the operands of an argument's metadata node: keys, which are strings, each followed by its
// values.
type keys struct {
	node bitcode.Node
	at   int
	err  error
}

func (k *keys) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf(format, args...)
	}
}

func (k *keys) next() bitcode.Operand {
	k.at++
	return k.node.Operand(k.at - 1)
}

// int reads an integer value of a key.
func (k *keys) int(key string) int64 {
	n, ok := k.next().Int()
	if !ok || n < 0 || n > 1<<40 {
		k.fail("%s has no number", key)
	}
	return n
}

func (k *keys) text(key string) string {
	s, ok := text(k.next())
	if !ok {
		k.fail("%s has no text", key)
	}
	return s
}

// text returns the string that an operand is, if it is printable.
func text(o bitcode.Operand) (string, bool) {
	s, ok := o.Text()
	return s, ok && printable(s)
}

// argument decodes the metadata node of an argument; number is its index in the function.
func argument(o bitcode.Operand, number int) (a air.Arg, err error) {
	node, ok := o.Node()
	if !ok {
		return a, fmt.Errorf("its metadata is no node")
	}
	k := &keys{node: node}
	if n := k.int("the argument"); k.err == nil && n != int64(number) {
		k.fail("the metadata is that of argument %d", n)
	}
	var fields bitcode.Operand
	memory, bound := false, false
	for k.at < node.Len() && k.err == nil {
		switch key := k.text("the argument"); key {
		case "air.function_constant":
			// {variable, type, name}
			n, _ := k.next().Node()
			if a.If, ok = text(n.Operand(2)); !ok || a.If == "" {
				k.fail("%s has no name", key)
			}
		case "air.buffer":
			memory = true
		case "air.buffer_size":
			a.Size = k.int(key)
		case "air.location_index":
			a.Index, bound = int(k.int(key)), true
			if n := k.int(key); n != 1 {
				k.fail("it takes %d slots, only arguments of one are known", n)
			}
			if a.Index >= maxSlots {
				k.fail("slot %d, the last one is %d", a.Index, maxSlots-1)
			}
		case "air.read":
			a.Access = air.Read
		case "air.write":
			a.Access = air.Write
		case "air.read_write":
			a.Access = air.ReadWrite
		case "air.address_space":
			n := k.int(key)
			if n < int64(air.Device) || n > int64(air.Threadgroup) {
				k.fail("address space %d is none that an argument has", n)
			}
			a.Space = air.Space(n)
		case "air.struct_type_info":
			fields = k.next()
		case "air.arg_type_size":
			a.TypeSize = k.int(key)
		case "air.arg_type_align_size":
			a.TypeAlign = k.int(key)
		case "air.arg_type_name":
			a.Type = k.text(key)
		case "air.arg_name":
			a.Name = k.text(key)
		case "air.arg_unused":
			a.Unused = true
		default:
			name, isAIR := strings.CutPrefix(key, "air.")
			if !isAIR || memory || a.Attribute != "" || bound {
				k.fail("its metadata has the unknown key %q", key)
			}
			a.Attribute = name
		}
	}
	switch {
	case k.err != nil:
	case memory && (!bound || a.Space == 0 || a.Access == 0):
		k.fail("a buffer has no slot, address space or access")
	case !memory && (bound || a.Attribute == ""):
		k.fail("%q is neither a buffer nor the position of a thread", a.Attribute)
	}
	if k.err == nil && fields != (bitcode.Operand{}) {
		budget := maxFields
		a.Fields, k.err = structFields(fields, 0, &budget)
	}
	return a, k.err
}

const (
	maxSlots  = 1 << 16
	maxFields = 1 << 12 // of all structs of one argument
	maxDepth  = 16      // of structs in structs, which a file could make cyclic
)

// structFields decodes a list of fields: (offset, size, length of an array or 0, type, name). Before a field that is
// a struct stands "air.struct_type_info" with the list of that struct's fields.
func structFields(o bitcode.Operand, depth int, budget *int) (out []air.Field, err error) {
	node, ok := o.Node()
	if !ok {
		return nil, fmt.Errorf("a struct has no list of its fields")
	}
	if depth == maxDepth {
		return nil, fmt.Errorf("structs lie in structs more than %d deep", maxDepth)
	}
	k := &keys{node: node}
	for k.at < node.Len() && k.err == nil {
		if *budget--; *budget < 0 {
			return nil, fmt.Errorf("structs have more than %d fields", maxFields)
		}
		var f air.Field
		if key, is := node.Operand(k.at).Text(); is {
			if key != "air.struct_type_info" {
				return nil, fmt.Errorf("a field has the unknown key %q", key)
			}
			k.at++
			if f.Fields, err = structFields(k.next(), depth+1, budget); err != nil {
				return nil, err
			}
		}
		f.Offset, f.Size = k.int("a field"), k.int("a field")
		f.Array = int(k.int("a field"))
		f.Type, f.Name = k.text("a field"), k.text("a field")
		out = append(out, f)
	}
	return out, k.err
}
