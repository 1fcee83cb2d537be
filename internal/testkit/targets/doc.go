// Package targets holds the test that every package, and every test, has types for machines other than the one
// that tests run on. It reads sources alone and compiles nothing, which takes an eighth of the time of go vet;
// make darwin, of make test-all, compiles, links and vets.
package targets
