// Package sample chooses which members of a family a run of the tests takes, where testing all of them in every way
// would take most of the time: instances of a kernel template, encodings, recorded cases. Of cases it
// takes the first of each family, and one in eight or sixteen of the others; of kernels one in [Instances] of each template.
// The choice depends on the run's number, [Env], which make test increments, so that 128 runs in a row take every member at
// least once. With [WholeEnv], as make test-all sets it, everything is taken.
package sample
