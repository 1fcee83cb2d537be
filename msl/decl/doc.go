// Package decl reads kernel declarations, the comments above the kernels of
// msl/*.metal whose language docs/kernels.md gives, and applies them: [Decl.Bind]
// matches a declaration with a dispatch and yields an [Instance], which knows
// the dispatch's effects, its shapes and strides, and its terms.
package decl
