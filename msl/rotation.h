// What rotations by position share. A thread turns one pair of elements of a head, or of HEADS heads, by one angle.

// Rotations of any kind, for declarations: forward or back, in either pairing. theta has the indices t and i, sign is
// that of its sine. apart says that rows of results do not overlap.
//
// @lines   apart(heads; strides)
// @require {strides}[2] == 1
// @require length == 1 || {strides}[1] >= 2*pairs
// @require {heads} == 1 || {strides}[0] >= 2*pairs
// @require {heads} == 1 || length == 1 || {strides}[0] >= length*{strides}[1] || {strides}[1] >= {heads}*{strides}[0]
// @end
// @lines   one_position(T)
// @arg     in      device {T}[heads, 2*pairs : stride, 1] read
// @arg     out     device {T}[heads, 2*pairs : stride, 1] write
// @arg     offset  constant i32
// @arg     scale   constant f32
// @arg     stride  constant i64
// @end
// @lines   positions(T)
// @arg     in             device {T}[batch, n_head, length, 2*pairs \
//            : hs_transpose*length*strides[1] + (1 - hs_transpose)*n_head*strides[0], strides[0], strides[1], strides[2]] read
// @arg     out            device {T}[batch, n_head, length, 2*pairs : n_head*out_strides[0], out_strides[0], out_strides[1], 1] write
// @arg     offset         device i32[batch : offset_stride] read
// @arg     scale          constant f32
// @arg     strides        constant i64[3]
// @arg     out_strides    constant i64[3]
// @arg     offset_stride  constant i64
// @arg     n_head         constant i32
// @end
// @lines   batches()
// @threads pairs, length, groups
// @group   _, _, _
// @let     batch = groups/ceil(n_head/4)
// @require groups == batch*ceil(n_head/4)
// @use     apart(batch*n_head; out_strides)
// @inplace out in
// @end
// @text    one() = i*(1 + traditional)
// @text    other() = i*(1 + traditional) + traditional + (1 - traditional)*pairs
// @text    pair() = traditional*(j/2) + (1 - traditional)*(j % pairs)
// @lines   turned_either(t; row; T; sign)
// @where   sine[{t}i] = {sign}sin(theta[{t}i])
// @where   first[{row},i] = in[{row},{one()}] * cos(theta[{t}i]) - in[{row},{other()}] * sine[{t}i]
// @where   second[{row},i] = in[{row},{one()}] * sine[{t}i] + in[{row},{other()}] * cos(theta[{t}i])
// @term    out[{row},j] = round({T}, select(traditional == 1 && j % 2 == 0 || traditional == 0 && j < pairs, \
//            first[{row},{pair()}], second[{row},{pair()}]))
// @end

constant bool forward [[function_constant(1)]];
constant bool traditional [[function_constant(2)]];
constant bool hs_transpose [[function_constant(3)]];

constexpr constant int HEADS = 4;

inline float angle(float position, uint pair, uint pairs, float base) {
  return position * precise::exp2(-(float(pair) / float(pairs)) * base);
}

// turn rotates the pair (a, b), back if not forward.
inline void turn(float a, float b, float theta, thread float& ra, thread float& rb) {
  const float c = precise::cos(theta);
  const float s = forward ? precise::sin(theta) : -precise::sin(theta);
  ra = a * c - b * s;
  rb = a * s + b * c;
}

// rotate_head turns pair `pair` of one head.
template <typename T>
inline void rotate_head(const device T* in, device T* out, float theta, uint pair, uint pairs) {
  const uint i = traditional ? 2 * pair : pair;
  const uint j = i + (traditional ? 1 : pairs);
  float a;
  float b;
  turn(float(in[i]), float(in[j]), theta, a, b);
  out[i] = stored(T(a));
  out[j] = stored(T(b));
}

// rotate_heads turns pair `pair` of HEADS heads from `head` on, of the n_head
// heads at one position; in and out begin at that position of head 0. Strides
// are those of a head and of an element.
template <typename T>
inline void rotate_heads(
    const device T* in, device T* out, long in_head, long in_step, long out_head, long out_step, int head, int n_head, float theta, uint pair, uint pairs) {
  const long first = traditional ? 2 * long(pair) : long(pair);
  const long apart = traditional ? 1 : long(pairs);
  long from = head * in_head + first * in_step;
  long to = head * out_head + first * out_step;
  for (int h = head; h < min(head + HEADS, n_head); h++) {
    float a;
    float b;
    turn(float(in[from]), float(in[from + apart * in_step]), theta, a, b);
    out[to] = stored(T(a));
    out[to + apart * out_step] = stored(T(b));
    from += in_head;
    to += out_head;
  }
}

// The grid's z counts groups of HEADS heads, batch by batch.
inline int head_groups(int n_head) { return (n_head + HEADS - 1) / HEADS; }

// first_of is where a batch of in begins.
inline long first_of(int batch, constant long* strides, int n_head, uint3 grid) {
  return hs_transpose ? batch * long(grid.y) * strides[1] : batch * n_head * strides[0];
}
