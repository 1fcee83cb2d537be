package conformance

import "strings"

// equivalents lists the corruptions that are no lies, and why: nothing that a
// declaration promises is broken by them. A corruption is listed only if it is
// equivalent by construction, whatever the kernel's code; one that merely goes
// unnoticed is a gap in the tests.
var equivalents = []struct {
	function string // a pattern of path.Match for function#number of the declaration
	mutant   string // with * for any text
	reason   string
}{
	{"*", "round: *round(f32, *", "every operation yields an f32, which round(f32, …) does not change"},
	{"vv_*", "slot: a exchanged with b", "a + b = b + a and a · b = b · a, to the bit"},
	{"add_rms*", "slot: a exchanged with b", "a + b = b + a, to the bit"},
	{"*", "shape: offset[0] 1 -> 2", "more bytes declared as read than are read: reads are contained"},
	{"affine_embed_*", "inplace: allow out *", "K = K/g for K = 0 alone: nothing is touched"},
	{"g*_copy*", "inplace: allow dst src", "a copy onto itself"},
	{"sdpa_rows_*", "inplace: allow out queries", "a threadgroup reads its own row of the queries before it writes this row"},
	{"sdpa_vector_*#1", "inplace: allow out queries", "as in sdpa_rows: both are [heads, L, D]"},
	{"affine_qmv_fast_*", "groups: * ceil(out_vec_size / 8) -> rounded down", "out_vec_size is a multiple of 8"},
	{"affine_qmv_fast_*", "require: in_vec_size >= 1 -> in_vec_size > 1", "in_vec_size is a multiple of 256"},
	{"affine_qmv_fast_*", "require: out_vec_size >= 1 -> out_vec_size > 1", "out_vec_size is a multiple of 8"},
	{"affine_qmv_fast_*", "require: n? >= 1 -> n? > 1", "each is a multiple of 8"},
	{"affine_qmv_fast_*", "require: 1 -> 2", "both sizes are multiples of more"},
	{"affine_qmv_fast_*", "require: 2048 -> 2049", "2049/4 = 2048/4 and 2049/8 = 2048/8"},
	{"affine_gather_qmv_*", "slot: x_batch_ndims exchanged with w_batch_ndims", "both are 1"},
	{"affine_gather_qmv_*#0", "slot: ?_batch_ndims exchanged with batch_ndims", "all three are 1"},
	{"affine_gather_qmv_*", "require: 32 -> 33", "33/4 = 32/4 and 33/8 = 32/8"},
	{"affine_gather_qmv_fast_*", "groups: * ceil(out_vec_size / 8) -> rounded down", "out_vec_size is a multiple of 8"},
	{"affine_gather_qmv_fast_*", "require: 2048 -> 2049", "2049/4 = 2048/4 and 2049/8 = 2048/8"},
	{"argmax_*", "require: 1024 -> 1025", "lanes is a multiple of 32"},
	{"argmax_*", "require: lanes % 32 == 0 && lanes >= 32 -> lanes % 32 == 0", "no lanes are an empty grid, which binding refuses where something must be written"},
	{"*rms_looped*", "require: 1024 -> 1025", "threads is a multiple of 32"},
	{"*layer_norm_looped*", "require: 1024 -> 1025", "threads is a multiple of 32"},
	{"col_reduce_*", "slot: reduction_size exchanged with non_col_reductions", "the number of rows is their product"},
	{"looped_softmax_*", "require: 1024 -> 1025", "threads is a multiple of 32"},
	{"*_softmax_*", "operation: top: max[*", "exp(x - c) / Σ exp(x - c) is one number for every c; where it overflows or underflows, nothing is said of it"},
	{"gg?_copy*", "require: drop d? == 1 || dst_strides* >= 1", "a written dimension of stride 0 is refused in any case"},
	{"sdpa_*", "require: gqa_factor >= 1 && N >= 1 -> N >= 1", "gqa_factor = 0 divides by zero in the shape of the keys"},
}

// glob matches text with a pattern in which * is any text and ? any byte.
func glob(pattern, text string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if len(text) < len(head) {
		return false
	}
	for i := range len(head) {
		if head[i] != '?' && head[i] != text[i] {
			return false
		}
	}
	text = text[len(head):]
	if !star {
		return text == ""
	}
	for i := 0; i <= len(text); i++ {
		if glob(rest, text[i:]) {
			return true
		}
	}
	return false
}
