package invariants

// Caches reports whether what was found before may be believed. Only the tests of package
// internal/testing/caches set it, while nothing else runs.
var Caches = true
