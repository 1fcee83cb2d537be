// Package isel is instruction selection over kernel declarations: which single
// dispatch of a declared kernel computes what a group of dispatches computes.
//
// A [Group] is a set of dispatches, bound to their declarations, with the loads that take their value from another
// member. Its terms are composed: a load of an intermediate becomes the producer's term, with the index maps
// composed. [Library.Match] unifies the composed terms with those of each declared kernel that passes a prefilter,
// which compares the terms' trees of operators. The unknowns are the kernel's symbols and views,
// which follow from loop bounds, literals, shapes and addresses. The solution is only a proposal. It is bound like
// any recorded dispatch, its own terms are normalized over the same indices, and it is accepted only if they are the
// same terms over the same leaves and if it writes exactly the bytes of the results that the group keeps.
//
// Terms are equal to the bit, unless rewrite round is allowed: then roundings of
// intermediates to f16 and bf16 may be missing (docs/terms.md, "Named rewrites").
//
// No kernel is named here: a new fused kernel is a new declaration.
//
// Package passes/internal/fusion decides which groups to try, where the fused dispatch may stand, and
// whether the intermediates are dead.
//
// Words: a form is an integer expression in normal form (a sum of atoms with
// coefficients); a space interns forms and values, so that equal ones have equal
// numbers; a leaf is an element of a view that no member wrote; a slot is a
// view's place in memory, as far as two views of a group must be compared.
//
//	lib := isel.Builtin()
//	m, err := lib.Match(&isel.Group{Graph: g, Members: ms, Source: links, Results: kept})
//	// m.Dispatch, of kernel m.Kernel, stands for all members
package isel
