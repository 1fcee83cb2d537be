// Package msltree reads a preprocessed Metal source as far as rewriting it needs: its tokens, with
// the lines that they stand in, and what they declare (functions, kernels and their instances,
// function constants, threadgroup variables). The rest of the grammar is left to clang.
//
//	s, err := msltree.NewStream(preprocessed)
//	u := msltree.Parse(s)
//	for _, k := range u.Entries() { … k.Host, k.Function.Params … }
//	s.Replace(i, "static")
//	cpp := s.String()
//
// A kernel's *host name* is the name by which a host asks the library for it. An *instance* is a
// template kernel with its template arguments. Edits never move a token to another line, so that
// clang's messages name the lines of the source.
package msltree
