// Package sample chooses which members of a family a run of the tests takes, where testing all of them on
// every way would take most of the time: instances of one template of kernels, ways to encode, recorded
// cases. The first member of each family is always taken, and one in eight of the others. Which ones follows
// from the run's number, [Env], which make test counts on, so that sixteen runs in a row take every member
// at least once. With [WholeEnv], as make test-all sets it, everything is taken.
package sample
