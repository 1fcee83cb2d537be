package bitcode

import "encoding/binary"

// cursor reads bits, the least significant bit of a byte first.
type cursor struct {
	data []byte
	base int64  // of data in the file, for errors
	pos  uint64 // bits
	end  uint64 // bits: the end of what may be read
}

// left returns how many bits may still be read.
func (c *cursor) left() uint64 { return c.end - c.pos }

// fixed reads an integer of n bits, at most 64.
func (c *cursor) fixed(n uint) uint64 {
	if n == 0 {
		return 0
	}
	if uint64(n) > c.left() {
		c.fail("%d bits are expected, %d are left", n, c.left())
	}
	at, shift := c.pos>>3, uint(c.pos&7)
	var v uint64
	if at+8 <= uint64(len(c.data)) {
		v = binary.LittleEndian.Uint64(c.data[at:]) >> shift
		if shift+n > 64 {
			v |= uint64(c.data[at+8]) << (64 - shift)
		}
	} else {
		for i := uint64(0); at+i < uint64(len(c.data)); i++ {
			v |= uint64(c.data[at+i]) << (8 * i)
		}
		v >>= shift
	}
	c.pos += uint64(n)
	return v & (1<<n - 1)
}

// vbr reads a variable-width integer: chunks of n bits, from 2 to 32, whose highest bit says that another one
// follows.
func (c *cursor) vbr(n uint) uint64 {
	more := uint64(1) << (n - 1)
	v := uint64(0)
	for shift := uint(0); ; shift += n - 1 {
		chunk := c.fixed(n)
		part := chunk & (more - 1)
		if shift >= 64 && part != 0 || shift < 64 && part<<shift>>shift != part {
			c.fail("an integer has more than 64 bits")
		}
		if shift < 64 {
			v |= part << shift
		}
		if chunk&more == 0 {
			return v
		}
	}
}

// align skips to the next multiple of 32 bits.
func (c *cursor) align() {
	to := (c.pos + 31) &^ 31
	if to > c.end {
		c.fail("ends in the middle of a word of 32 bits")
	}
	c.pos = to
}

// skip skips n bits.
func (c *cursor) skip(n uint64) {
	if n > c.left() {
		c.fail("%d bits are expected, %d are left", n, c.left())
	}
	c.pos += n
}

const char6 = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._"
