package calls

import (
	"fmt"
	"regexp"
	"strconv"
)

// typ is a scalar, a vector of 2 to 4 scalars, a pointer or void.
type typ struct {
	elem  string // "float", "half", "bfloat", "i1" … "i64"; "ptr"; "void"
	lanes int    // 0 of a scalar
	space int    // of a pointer: its address space
}

var (
	float32s = typ{elem: "float"}
	int32s   = typ{elem: "i32"}
	int1s    = typ{elem: "i1"}
	pointers = typ{elem: "ptr"}
	none     = typ{elem: "void"}
)

var (
	vectorType  = regexp.MustCompile(`^<([2-4]) x (float|half|bfloat|i1|i8|i16|i32|i64)>$`)
	scalarType  = regexp.MustCompile(`^(float|half|bfloat|i1|i8|i16|i32|i64|ptr|void)$`)
	pointerType = regexp.MustCompile(`^ptr addrspace\(([0-3])\)$`)
)

func parseType(s string) (typ, error) {
	if scalarType.MatchString(s) {
		return typ{elem: s}, nil
	}
	if m := vectorType.FindStringSubmatch(s); m != nil {
		n, _ := strconv.Atoi(m[1])
		return typ{elem: m[2], lanes: n}, nil
	}
	if m := pointerType.FindStringSubmatch(s); m != nil {
		n, _ := strconv.Atoi(m[1])
		return typ{elem: "ptr", space: n}, nil
	}
	return typ{}, fmt.Errorf("type %s is not one of Metal's scalars, vectors and pointers", printable(s))
}

// of is the type with another element: the mask of a comparison, the bits of a float.
func (t typ) of(elem string) typ { return typ{elem: elem, lanes: t.lanes} }

func (t typ) scalar() typ { return typ{elem: t.elem} }

func (t typ) float() bool { return t.elem == "float" || t.elem == "half" || t.elem == "bfloat" }

func (t typ) integer() bool { return t.elem[0] == 'i' }

// bits are those of one element.
func (t typ) bits() int {
	switch t.elem {
	case "float":
		return 32
	case "half", "bfloat":
		return 16
	}
	n, _ := strconv.Atoi(t.elem[1:])
	return n
}

// String is how LLVM writes the type, without address space.
func (t typ) String() string {
	if t.lanes > 0 {
		return fmt.Sprintf("<%d x %s>", t.lanes, t.elem)
	}
	return t.elem
}

// written is how the target writes it.
func (t typ) written(target Target) string {
	if t.elem != "ptr" || t.space == 0 {
		return t.String()
	}
	space := t.space
	if target == PTX && space == 2 {
		space = 1
	}
	return fmt.Sprintf("ptr addrspace(%d)", space)
}

// suffix is how names of intrinsics spell the type: v4f32.
func (t typ) suffix() string {
	e := map[string]string{"float": "f32", "half": "f16", "bfloat": "bf16"}[t.elem]
	if e == "" {
		e = t.elem
	}
	if t.lanes > 0 {
		return fmt.Sprintf("v%d%s", t.lanes, e)
	}
	return e
}

var suffixes = regexp.MustCompile(`^(?:v([2-4]))?(f32|f16|bf16|i1|i8|i16|i32|i64)$`)

// parseSuffix reads the type at the end of a name.
func parseSuffix(s string) (typ, error) {
	m := suffixes.FindStringSubmatch(s)
	if m == nil {
		return typ{}, fmt.Errorf("%q at the end of the name is no type", s)
	}
	t := typ{elem: m[2]}
	if e := map[string]string{"f32": "float", "f16": "half", "bf16": "bfloat"}[m[2]]; e != "" {
		t.elem = e
	}
	if m[1] != "" {
		t.lanes = int(m[1][0] - '0')
	}
	return t, nil
}
