// Package campaign holds the long tests of package prove: thousands of mutations
// of graphs, judged by package judge, and a prover from which one check is
// missing at a time.
package campaign
