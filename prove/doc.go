// Package prove decides whether a graph computes what another one computes:
// equal outputs and states, for every value of the params and the inputs, under
// every order that the graph allows.
//
// It stands apart from the passes: it imports the graph and the kernel
// declarations, nothing of passes, internal/analysis/hazard or internal/analysis/dataflow, and it believes neither
// provenance nor the effects that a graph stores. [Check] answers proved,
// refused (with the place), or cannot tell (with what is missing).
//
// Files follow the points of docs/proof.md: interface.go and claims.go (0), coverage.go (1),
// values.go, segments.go and trace.go (2, 3), order.go and pillars.go (4), fusion.go,
// compose.go, terms.go and rewrites.go (5), aliasing.go (6). match.go guesses which
// command is whose image, command.go compares one with another, region.go compares
// ranges of bytes (shapes.go: each pair once), model.go resolves what a graph touches.
package prove
