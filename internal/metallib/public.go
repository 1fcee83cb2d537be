package metallib

import (
	"bytes"

	"github.com/mlxc/mlxc/internal/air"
)

// constantTypes are the types of function constants by their number in public metadata, which is that of Metal's
// MTLDataType.
var constantTypes = map[uint8]string{
	0x03: "float", 0x04: "float2", 0x05: "float3", 0x06: "float4",
	0x10: "half", 0x11: "half2", 0x12: "half3", 0x13: "half4",
	0x1d: "int", 0x1e: "int2", 0x1f: "int3", 0x20: "int4",
	0x21: "uint", 0x22: "uint2", 0x23: "uint3", 0x24: "uint4",
	0x25: "short", 0x26: "short2", 0x27: "short3", 0x28: "short4",
	0x29: "ushort", 0x2a: "ushort2", 0x2b: "ushort3", 0x2c: "ushort4",
	0x2d: "char", 0x2e: "char2", 0x2f: "char3", 0x30: "char4",
	0x31: "uchar", 0x32: "uchar2", 0x33: "uchar3", 0x34: "uchar4",
	0x35: "bool", 0x36: "bool2", 0x37: "bool3", 0x38: "bool4",
	0x51: "long", 0x55: "ulong",
}

// constants returns the function constants that the container lists for a kernel.
func (l *Library) constants(k *Kernel) (out []air.FunctionConstant, err error) {
	s := l.sections[publicMetadata]
	if s.size-k.public < 4 {
		return nil, l.errorf(s.offset+k.public, k.Name, "public metadata lies outside its section")
	}
	r := records{lib: l, kernel: k.Name, at: s.offset + k.public + 4, end: s.end()}
	for {
		tag, p, at, ok, err := r.next()
		if err != nil || !ok {
			return out, err
		}
		if tag != "CNST" {
			continue
		}
		bad := func() error {
			return l.errorf(at, k.Name, "the list of function constants ends too early")
		}
		if len(p) < 2 {
			return nil, bad()
		}
		n := int(order.Uint16(p))
		p = p[2:]
		for range n {
			end := bytes.IndexByte(p, 0)
			if end < 0 || len(p)-end < 5 {
				return nil, bad()
			}
			c := air.FunctionConstant{Name: string(p[:end]), Type: constantTypes[p[end+1]], Index: int(order.Uint16(p[end+2:]))}
			if c.Type == "" {
				return nil, l.errorf(at, k.Name, "function constant %q has the unknown type %#x", c.Name, p[end+1])
			}
			out = append(out, c)
			p = p[end+5:]
		}
	}
}
