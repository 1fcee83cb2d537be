package mlxg

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// cursor reads the msgpack values of one section. Writing uses a msgpack library, but the
// library's reader does not guarantee the following:
//
//   - every length is compared with the bytes that remain before it is believed;
//   - a value that the end of the section cuts off is an error;
//   - strings and byte arrays are slices of the section, not copies;
//   - only the values that the format expects are read, so there is no recursion.
//
// The first error is kept in err. After it, every method returns zero.
type cursor struct {
	file    string
	section sectionKind
	base    int64 // offset of data[0] in the file
	data    []byte
	pos     int
	err     error

	graph  string // name of the graph that is being read, for errors; "" outside one
	places [2]listElement
	depth  int // how many of places count
}

// listElement says for errors which element of a list is being read.
type listElement struct {
	kind  string
	index int
}

func (im *image) cursor(k sectionKind) *cursor {
	s := im.sections[k]
	c := &cursor{file: im.name, section: k, base: int64(s.offset), data: im.bytes(s)}
	return c
}

// enter notes that an element of a list is being read. Level 0 is a list of the graph or
// the section, level 1 a list inside such an element.
func (c *cursor) enter(level int, kind string, index int) {
	c.places[level] = listElement{kind, index}
	c.depth = level + 1
}

// leave notes that the element of the given level was read.
func (c *cursor) leave(level int) { c.depth = level }

func (c *cursor) fail(offset int, format string, args ...any) {
	if c.err != nil {
		return
	}
	var at strings.Builder
	at.WriteString("section " + c.section.String())
	if c.graph != "" {
		at.WriteString(": graph " + strconv.Quote(c.graph))
	}
	for _, p := range c.places[:c.depth] {
		fmt.Fprintf(&at, ": %s %d", p.kind, p.index)
	}
	c.err = problem(c.file, c.base+int64(offset), at.String(), fmt.Sprintf(format, args...), "", nil)
}

// code returns the first byte of the next value.
func (c *cursor) code(what string) (byte, bool) {
	if c.err != nil {
		return 0, false
	}
	if c.pos == len(c.data) {
		c.fail(c.pos, "section ends before %s", what)
		return 0, false
	}
	return c.data[c.pos], true
}

// fits reports whether the n bytes that follow the next value's code are there.
func (c *cursor) fits(what string, n int) bool {
	if len(c.data)-c.pos-1 < n {
		c.fail(c.pos, "section ends inside %s", what)
		return false
	}
	return true
}

// scalarWidth returns how many bytes follow the code of an integer, or -1.
func scalarWidth(code byte) int {
	switch code {
	case msgpcode.Uint8, msgpcode.Int8:
		return 1
	case msgpcode.Uint16, msgpcode.Int16:
		return 2
	case msgpcode.Uint32, msgpcode.Int32:
		return 4
	case msgpcode.Uint64, msgpcode.Int64:
		return 8
	}
	if msgpcode.IsFixedNum(code) {
		return 0
	}
	return -1
}

// int reads an integer in [min, max].
func (c *cursor) int(what string, min, max int64) int64 {
	code, ok := c.code(what)
	if !ok {
		return 0
	}
	start := c.pos
	v := int64(code)
	if code <= msgpcode.PosFixedNumHigh {
		c.pos++ // the fast path, because most integers of a graph are this small
	} else {
		width := scalarWidth(code)
		if width < 0 {
			c.fail(start, "%s is %s, want an integer", what, describe(code))
			return 0
		}
		if !c.fits(what, width) {
			return 0
		}
		var ok bool
		if v, ok = c.scalar(code, width); !ok {
			c.fail(start, "%s is %d, want %d to %d", what, uint64(v), min, max)
			return 0
		}
	}
	if v < min || v > max {
		c.fail(start, "%s is %d, want %d to %d", what, v, min, max)
		return 0
	}
	return v
}

// scalar reads an integer of a given code, which is followed by width bytes. ok is false if
// an int64 cannot hold it; then v has its bits.
func (c *cursor) scalar(code byte, width int) (v int64, ok bool) {
	b := c.data[c.pos+1 : c.pos+1+width]
	c.pos += 1 + width
	big := binary.BigEndian
	switch code {
	case msgpcode.Uint8:
		return int64(b[0]), true
	case msgpcode.Int8:
		return int64(int8(b[0])), true
	case msgpcode.Uint16:
		return int64(big.Uint16(b)), true
	case msgpcode.Int16:
		return int64(int16(big.Uint16(b))), true
	case msgpcode.Uint32:
		return int64(big.Uint32(b)), true
	case msgpcode.Int32:
		return int64(int32(big.Uint32(b))), true
	case msgpcode.Uint64:
		v = int64(big.Uint64(b))
		return v, v >= 0
	case msgpcode.Int64:
		return int64(big.Uint64(b)), true
	}
	return int64(int8(code)), true // a negative fixnum
}

// length reads the length of a list, string or byte array, which has width bytes behind the
// code. If width is 0, the length is in the code itself, in the bits of the mask fixed.
func (c *cursor) length(code, fixed byte, width int) int {
	b := c.data[c.pos+1 : c.pos+1+width]
	c.pos += 1 + width
	switch width {
	case 0:
		return int(code & fixed)
	case 1:
		return int(b[0])
	case 2:
		return int(binary.BigEndian.Uint16(b))
	}
	return int(binary.BigEndian.Uint32(b))
}

// skip returns the offset behind the value that begins at pos, without decoding it. ok is
// false if the section ends inside the value, or if the value has types other than
// integers, 64-bit floats, bools, nil, strings, byte arrays and arrays of these. This allows
// several goroutines to read one section, and finds values with equal bytes before they are
// decoded.
func (c *cursor) skip(pos int) (end int, ok bool) {
	for left := 1; left > 0; left-- {
		if pos >= len(c.data) {
			return 0, false
		}
		code := c.data[pos]
		pos++
		switch {
		case code <= msgpcode.PosFixedNumHigh || code >= msgpcode.NegFixedNumLow:
			continue
		case code&^msgpcode.FixedArrayMask == msgpcode.FixedArrayLow:
			left += int(code & msgpcode.FixedArrayMask)
			continue
		case code&^msgpcode.FixedStrMask == msgpcode.FixedStrLow:
			pos += int(code & msgpcode.FixedStrMask)
			continue
		}
		if width := scalarWidth(code); width >= 0 {
			pos += width
			continue
		}
		width, array := arrayWidth(code), true
		if width < 0 {
			width, array = max(binWidth(code), strWidth(code)), false
		}
		switch {
		case code == msgpcode.Nil || code == msgpcode.True || code == msgpcode.False:
			continue
		case code == msgpcode.Double:
			pos += 8
			continue
		case width < 0 || len(c.data)-pos < width:
			return 0, false
		}
		n := 0
		for _, b := range c.data[pos : pos+width] {
			n = n<<8 | int(b)
		}
		pos += width
		if n > len(c.data)-pos {
			return 0, false
		}
		if array {
			left += n
		} else {
			pos += n
		}
	}
	return pos, pos <= len(c.data)
}

// uint64 reads an unsigned integer of up to 64 bits.
func (c *cursor) uint64(what string) uint64 {
	if code, ok := c.code(what); !ok || code != msgpcode.Uint64 {
		return uint64(c.int(what, 0, math.MaxInt64))
	}
	if !c.fits(what, 8) {
		return 0
	}
	v, _ := c.scalar(msgpcode.Uint64, 8)
	return uint64(v)
}

// float64 reads a 64-bit float. An integer in its place is an error.
func (c *cursor) float64(what string) float64 {
	code, ok := c.code(what)
	if !ok {
		return 0
	}
	if code != msgpcode.Double {
		c.fail(c.pos, "%s is %s, want a float 64", what, describe(code))
		return 0
	}
	if !c.fits(what, 8) {
		return 0
	}
	b := c.data[c.pos+1 : c.pos+9]
	c.pos += 9
	return math.Float64frombits(binary.BigEndian.Uint64(b))
}

// bool reads a bool. Nil in its place is an error.
func (c *cursor) bool(what string) bool {
	code, ok := c.code(what)
	if !ok {
		return false
	}
	if code != msgpcode.True && code != msgpcode.False {
		c.fail(c.pos, "%s is %s, want a bool", what, describe(code))
		return false
	}
	c.pos++
	return code == msgpcode.True
}

// isNil reports whether the next value is nil. If so, it reads it.
func (c *cursor) isNil(what string) bool {
	code, ok := c.code(what)
	if !ok || code != msgpcode.Nil {
		return false
	}
	c.pos++
	return true
}

// arrayNext reports whether the next value is an array.
func (c *cursor) arrayNext(what string) bool {
	code, ok := c.code(what)
	return ok && arrayWidth(code) >= 0
}

func arrayWidth(code byte) int {
	switch {
	case code&^msgpcode.FixedArrayMask == msgpcode.FixedArrayLow:
		return 0
	case code == msgpcode.Array16:
		return 2
	case code == msgpcode.Array32:
		return 4
	}
	return -1
}

// list reads the length of an array whose elements have at least elem bytes each, and
// refuses a length that the rest of the section cannot hold.
func (c *cursor) list(what string, elem int) int {
	code, ok := c.code(what)
	if !ok {
		return 0
	}
	start, width := c.pos, arrayWidth(code)
	if width < 0 {
		c.fail(start, "%s is %s, want an array", what, describe(code))
		return 0
	}
	if !c.fits(what, width) {
		return 0
	}
	n := c.length(code, msgpcode.FixedArrayMask, width)
	if left := len(c.data) - c.pos; n > left/elem {
		c.fail(start, "%s claims %d elements, the %d bytes that are left hold at most %d", what, uint32(n), left, left/elem)
		return 0
	}
	return n
}

// tuple reads the length of an array that must have n elements.
func (c *cursor) tuple(what string, n int) bool {
	start := c.pos
	got := c.list(what, 1)
	if c.err == nil && got != n {
		c.fail(start, "%s has %d elements, want %d", what, got, n)
	}
	return c.err == nil
}

// bin reads a byte array and returns it as a slice of the section.
func (c *cursor) bin(what string) []byte {
	return c.raw(what, "a bin", binWidth)
}

// utf8 reads a string and returns it as a slice of the section.
func (c *cursor) utf8(what string) []byte {
	start := c.pos
	b := c.raw(what, "a str", strWidth)
	if c.err == nil && !utf8.Valid(b) {
		c.fail(start, "%s is no UTF-8: %q", what, b[:min(len(b), 40)])
	}
	return b
}

func (c *cursor) raw(what, want string, widthOf func(byte) int) []byte {
	code, ok := c.code(what)
	if !ok {
		return nil
	}
	start, width := c.pos, widthOf(code)
	if width < 0 {
		c.fail(start, "%s is %s, want %s", what, describe(code), want)
		return nil
	}
	if !c.fits(what, width) {
		return nil
	}
	n := c.length(code, msgpcode.FixedStrMask, width)
	if left := len(c.data) - c.pos; n > left {
		c.fail(start, "%s claims %d bytes, %d are left", what, uint32(n), left)
		return nil
	}
	c.pos += n
	return c.data[c.pos-n : c.pos : c.pos]
}

func binWidth(code byte) int {
	switch code {
	case msgpcode.Bin8:
		return 1
	case msgpcode.Bin16:
		return 2
	case msgpcode.Bin32:
		return 4
	}
	return -1
}

func strWidth(code byte) int {
	switch code {
	case msgpcode.Str8:
		return 1
	case msgpcode.Str16:
		return 2
	case msgpcode.Str32:
		return 4
	}
	if code&^msgpcode.FixedStrMask == msgpcode.FixedStrLow {
		return 0
	}
	return -1
}

// end checks that the section ends here, and returns the first error.
func (c *cursor) end() error {
	if c.err == nil && c.pos != len(c.data) {
		c.graph, c.depth = "", 0
		c.fail(c.pos, "%d bytes are left over at its end", len(c.data)-c.pos)
	}
	return c.err
}

// describe names the type of the value that begins with code.
func describe(code byte) string {
	switch {
	case scalarWidth(code) >= 0:
		return "an integer"
	case arrayWidth(code) >= 0:
		return "an array"
	case strWidth(code) >= 0:
		return "a str"
	case binWidth(code) >= 0:
		return "a bin"
	case code&^msgpcode.FixedMapMask == msgpcode.FixedMapLow || code == msgpcode.Map16 || code == msgpcode.Map32:
		return "a map"
	}
	switch code {
	case msgpcode.Nil:
		return "nil"
	case msgpcode.True, msgpcode.False:
		return "a bool"
	case msgpcode.Float:
		return "a float 32"
	case msgpcode.Double:
		return "a float 64"
	}
	return fmt.Sprintf("of the extension type %#02x", code)
}

// extend returns s with one more element, which is zero. n is the length that the list in
// the file claims to have. The capacity doubles until it is n, so that a list with a false
// length allocates only in proportion to what it really holds, and any other list ends up
// without spare capacity.
func extend[T any](s []T, n int) []T {
	if len(s) < cap(s) {
		return s[:len(s)+1]
	}
	grown := make([]T, len(s)+1, max(len(s)+1, min(n, max(16, 2*len(s)))))
	copy(grown, s)
	return grown
}
