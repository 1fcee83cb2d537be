package main

// A machine is what loops are written for: vectors of some float32, streams that they come from and go to, and loops
// over streams. The two implementations, amd64 and arm64, write its operations as instructions.
//
// Where an operation has a destination it comes first. A result in a register is taken for it; what a loop's body
// takes is free again at its end.
type machine interface {
	// Registers and loops, of code.
	reg() reg
	free(reg)
	vecs(n int) []vec
	freeVecs(...vec)
	own(operand) vec
	scope(body func())
	pass(body func())
	loop(n reg, per any, body func())
	once(n reg, per int, body func())
	repeat(n reg, per int, body func())
	width() int // float32 in a vector

	// arg loads an argument, and stream one that is an address.
	arg(name string) reg
	stream(name string) *stream
	// parked is stream for what is accessed so seldom that it need not have a register where there are few.
	parked(name string) *stream
	// scale multiplies by a constant and then divides by a power of two.
	scale(r reg, by, shift int)
	// quotient returns a/b, for b a power of two; shifted a divided by one that is known.
	quotient(a, b reg) reg
	shifted(a reg, bits int) reg
	// strides returns what addresses so many rows, a given number of bytes apart; that register is used up.
	strides(bytes reg, rows int) strides
	// rows returns the stream of rows from an address on, whose register is used up; next leaves the address of the
	// row behind them there.
	rows(first reg, by strides, rows int) *stream
	next(first reg, by strides, rows int) *stream
	// beside returns the stream of what lies so many bytes behind the rows of another one.
	beside(s *stream, bytes int) *stream
	// number returns a register with a number.
	number(n int) reg
	// walk goes through the next rows of float32, so many elements of each in a pass, until their distance is used up;
	// off goes with ahead.
	walk(first reg, by strides, rows, per int, body func(s *stream, off reg))
	// panels lets a stream write a vector every so many bytes.
	panels(s *stream, bytes int)
	// align comes before a loop that runs long.
	align()
	// ifAny runs body unless n is 0.
	ifAny(n reg, body func())
	// tail runs body for what is left of n, less than a vector: with masks, or one element after another. It uses up n.
	tail(n reg, body func())
	// singles runs body for each element that is left of n. It uses up n.
	singles(n reg, body func())
	// returns ends the function with the first lane, rows with a number.
	returns(v vec)
	end()

	// atLeast runs body if an argument is as great, when if one is true. They take no registers from each other.
	atLeast(name string, n int, body func())
	when(name string, body func())
	setResult(name string, n int)

	// ahead returns a place to fetch from that goes with the rows from an address on, or "" if the hardware fetches
	// well enough; fetch fetches from far behind it and moves it; fetchRows fetches what walk comes to.
	ahead(first reg) reg
	fetch(p reg, bytes int)
	fetchRows(first, off reg)
	// fetchAhead fetches from far behind the place of a stream of 16-bit floats.
	fetchAhead(s *stream)

	// load reads the next n vectors of a row, peek without moving on, operands unless operations can do that
	// themselves. loadOr fills lanes that do not exist from another vector.
	load(s *stream, row, n int) []vec
	peek(s *stream, row, n int) []vec
	operands(s *stream, row, n int) []operand
	loadOr(s *stream, fill vec) vec
	store(s *stream, row int, vs ...vec)
	// storeLanes writes the first n lanes, 1 or 4.
	storeLanes(s *stream, v vec, n int)
	// scalars reads the next element of each row; broadcast prepares one for several multiplications.
	scalars(s *stream) []operand
	broadcast(operand) operand
	// columns goes through n columns of rows, at least one, and has their elements of each.
	columns(s *stream, n reg, body func(x []operand))
	// splat loads an argument into all lanes.
	splat(name string) vec
	// constants loads each number into all lanes of a register, but leaves so many registers free.
	constants(leave int, bits ...uint32) []operand
	copy(operand) vec
	zeros(n int) []vec

	add(d, a vec, b operand)
	sub(d vec, a operand, b vec)
	mul(d, a vec, b operand)
	div(d vec, a operand, b vec)
	// max and min have b if one is NaN on amd64, NaN on arm64.
	max(d vec, a, b operand)
	min(d vec, a, b operand)
	// fma adds a*b to d, fnma subtracts it. mulAdd returns t*a+b and uses up t; horner evaluates a polynomial, whose
	// first coefficient is that of the highest power.
	fma(d, a vec, b operand)
	fnma(d, a vec, b operand)
	mulAdd(t, a, b vec) vec
	horner(x vec, coefficients []operand) vec
	round(d, a vec)
	abs(v vec, sign operand)
	neg(v vec, sign operand)
	// select sets d to a where x has a sign, else to b; x is used up.
	selectSigned(d, x, a, b vec)
	// timesPowerOfTwo multiplies by 2^n, with one rounding; one is the float32 1.
	timesPowerOfTwo(d, n vec, one operand)

	// unordered gathers NaN for maximum, where max loses them; nan is made by noNaN.
	noNaN() []vec
	unordered(nan []vec, vs ...vec)
	// sum leaves the sum of the lanes in the first one, maximum the largest, or NaN. sums leaves those of each
	// register in a lane of the first register; a sum does not depend on how many there are.
	sum(v vec)
	maximum(v vec, nan []vec)
	sums(vs []vec)

	// narrowStream is stream for an array of 16-bit floats. widen reads n vectors of them as f32. storeNarrow rounds v to
	// the 16-bit type and writes it; roundNarrow rounds v and leaves it in f32.
	narrowStream(name string) *stream
	widen(s *stream, f narrowFloat, n int) []vec
	storeNarrow(s *stream, f narrowFloat, v vec)
	roundNarrow(v vec, f narrowFloat)
	canonicalNaN(v vec, nan operand)
	// These are of lanes as integers.
	shiftRight(d, a vec, bits int)
	and(d vec, a operand)
	addIntegers(d vec, a operand)

	// packRows is the number of rows that transpose takes: as many as lanes, of each of which it reads 4 numbers of 32
	// bits. Result i has those number i.
	transpose(s *stream) []vec
	// codes returns what takes code i of so many bits out of each 32-bit lane, as float32s, for several i.
	codes(bits int) func(w vec, is ...int) []vec
	quantized(bits int) quantized

	// transposeAt is transpose for what lies so many bytes behind a row's place, which stays.
	transposeAt(s *stream, off int) []vec
	xor(d vec, a operand)

	// For blocks: nibbles loads 16 bytes, of which nibble has the low or the high halves as codes; signedCodes has 16
	// bytes as codes. What they lie behind a row's place stays. next16 reads 16 elements of x in the order of codes,
	// which can be another one for nibbles. blockConstants comes before; it says what nibble takes from a code.
	// stridedHalves has f16s, as many as there are lanes, or one in singles, from an address on, which it moves on.
	blockConstants(bits, less int)
	nibbles(s *stream, row, off int) []vec
	nibble(raw []vec, high bool) []vec
	// forWholes prepares 32 elements of x for codes of which the first 16 are the low halves of bytes and the second 16 the
	// bytes as they are: a byte is its low half plus 16 times its high one, and to take it whole costs less than to take the
	// high half. It returns false where that is not so. wholes converts bytes in place.
	forWholes(x []vec) bool
	wholes(raw []vec) []vec
	signedCodes(s *stream, row, off int) []vec
	// sixBits has a group of 16 codes of half a block of q6_K, whose low four bits and upper two lie in two streams.
	sixBits(low, high *stream, row, group int) []vec
	// times multiplies by a scalar.
	times(d vec, scale operand)
	next16(s *stream, nibbles bool) []vec
	// heads has n f16s of each row that lie so many bytes behind its place, as scalars: those of row r begin at r*n. They
	// lie in that order in headVectors vectors too, of at most four rows, which freeHeads frees where scalars are others.
	heads(s *stream, off, n int) ([]operand, []vec)
	headVectors() int
	freeHeads([]vec)
	// addTimes adds the products of such vectors with a scalar, and addOdd to v every other number of them.
	addTimes(to, heads []vec, x operand)
	addOdd(v vec, heads []vec)
	// packedScales has the 8 scales of 6 bits, and the 8 that biases are made of, of a block of q4_K or q5_K.
	packedScales(s *stream, scaleConstants []operand) []vec
	stridedHalves(src reg, by strides) vec

	// panelMasks says which columns of a panel, so many vectors, exist: those less than an argument.
	panelMasks(name string, vectors int)
	addRow(s *stream, row int, vs []vec)
	putRow(s *stream, row int, vs []vec)
}

// quantized is how a machine multiplies quantized weights by x, in units of 32.
type quantized struct {
	bits   int
	fields int // the vectors that a unit fills
	// x reads a unit of x, in the order in which fields has the weights.
	x func(s *stream) []vec
	// unit reads a unit of a row, and returns what decodes fields [from, to) of it.
	unit func(s *stream, row int) func(from, to int) []vec
}
