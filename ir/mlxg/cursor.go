package mlxg

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// cursor reads the msgpack values of one section. The library decodes single
// values; the bounds are here, because its own do not hold:
//
//   - no length is believed before it was compared with the bytes that remain;
//   - the library never sees a value that the section cuts off;
//   - strings and byte arrays are slices of the section, not copies;
//   - values of unknown shape are never read, so there is no recursion.
//
// The first error stays (err); after it every method returns zero.
type cursor struct {
	file    string
	section kind
	base    int64 // offset of data[0] in the file
	data    []byte
	pos     int
	dec     *msgpack.Decoder
	err     error

	graph  string // name of the graph being read, "" outside one
	places [2]place
	depth  int
}

// place is a list element being read, for errors.
type place struct {
	kind  string
	index int
}

func (im *image) cursor(k kind) *cursor {
	s := im.sections[k]
	c := &cursor{file: im.name, section: k, base: int64(s.offset), data: im.bytes(s)}
	c.dec = msgpack.NewDecoder(c)
	return c
}

// Read, ReadByte and UnreadByte feed the library's decoder.

func (c *cursor) Read(p []byte) (int, error) {
	if c.pos == len(c.data) {
		return 0, io.EOF
	}
	n := copy(p, c.data[c.pos:])
	c.pos += n
	return n, nil
}

func (c *cursor) ReadByte() (byte, error) {
	if c.pos == len(c.data) {
		return 0, io.EOF
	}
	c.pos++
	return c.data[c.pos-1], nil
}

func (c *cursor) UnreadByte() error {
	c.pos--
	return nil
}

// enter says that element index of a list is being read; level 0 is a list of
// the graph (or the section), level 1 a list inside such an element.
func (c *cursor) enter(level int, kind string, index int) {
	c.places[level] = place{kind, index}
	c.depth = level + 1
}

// leave says that the element of the given level was read.
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
		c.pos++ // most integers of a graph: spare the decoder's calls
	} else {
		width := scalarWidth(code)
		if width < 0 {
			c.fail(start, "%s is %s, want an integer", what, describe(code))
			return 0
		}
		if !c.fits(what, width) {
			return 0
		}
		var err error
		if code == msgpcode.Uint64 {
			var u uint64
			if u, err = c.dec.DecodeUint64(); u > math.MaxInt64 {
				c.fail(start, "%s is %d, want %d to %d", what, u, min, max)
				return 0
			}
			v = int64(u)
		} else {
			v, err = c.dec.DecodeInt64()
		}
		if err != nil {
			c.fail(start, "%s: %v", what, err)
			return 0
		}
	}
	if v < min || v > max {
		c.fail(start, "%s is %d, want %d to %d", what, v, min, max)
		return 0
	}
	return v
}

// uint64 reads an integer of all 64 bits.
func (c *cursor) uint64(what string) uint64 {
	if code, ok := c.code(what); !ok || code != msgpcode.Uint64 {
		return uint64(c.int(what, 0, math.MaxInt64))
	}
	if !c.fits(what, 8) {
		return 0
	}
	start := c.pos
	v, err := c.dec.DecodeUint64()
	if err != nil {
		c.fail(start, "%s: %v", what, err)
	}
	return v
}

// float64 reads a 64-bit float; an integer is none.
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
	start := c.pos
	v, err := c.dec.DecodeFloat64()
	if err != nil {
		c.fail(start, "%s: %v", what, err)
	}
	return v
}

// bool reads a boolean; nil is none.
func (c *cursor) bool(what string) bool {
	code, ok := c.code(what)
	if !ok {
		return false
	}
	if code != msgpcode.True && code != msgpcode.False {
		c.fail(c.pos, "%s is %s, want a bool", what, describe(code))
		return false
	}
	v, err := c.dec.DecodeBool()
	if err != nil {
		c.fail(c.pos, "%s: %v", what, err)
	}
	return v
}

// isNil reports whether the next value is nil, and consumes it then.
func (c *cursor) isNil(what string) bool {
	code, ok := c.code(what)
	if !ok || code != msgpcode.Nil {
		return false
	}
	if err := c.dec.DecodeNil(); err != nil {
		c.fail(c.pos, "%s: %v", what, err)
	}
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

// list reads the length of an array whose elements have at least elem bytes.
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
	n, err := c.dec.DecodeArrayLen()
	if err != nil {
		c.fail(start, "%s: %v", what, err)
		return 0
	}
	if left := len(c.data) - c.pos; n < 0 || n > left/elem {
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
	n, err := c.dec.DecodeBytesLen()
	if err != nil {
		c.fail(start, "%s: %v", what, err)
		return nil
	}
	if left := len(c.data) - c.pos; n < 0 || n > left {
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

// end checks that the section holds nothing more.
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

// extend returns s with one zero element more. n is how many elements the list
// claims to have: the slice doubles towards n, so that a list which lies
// allocates in proportion to what it really holds, and an honest one ends with
// no spare room.
func extend[T any](s []T, n int) []T {
	if len(s) < cap(s) {
		return s[:len(s)+1]
	}
	grown := make([]T, len(s)+1, max(len(s)+1, min(n, max(16, 2*len(s)))))
	copy(grown, s)
	return grown
}
