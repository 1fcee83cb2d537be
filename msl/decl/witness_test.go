package decl_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

func TestWitness(t *testing.T) {
	read, err := decl.Parse("row.metal", source(append(row(),
		"witness rowfloat* ; fast@20=1 n=64 pitch=70 inplace=y,x ; groups 5 1 1 / 64 1 1 ; ok -- two simdgroups",
		"equivalent row* ; require: 1024 -> 1025 ; the rows ; are short")...))
	require.NoError(t, err)
	require.Len(t, read.Decls, 2)
	tests, err := read.Tests()
	require.NoError(t, err)
	assert.Equal(t, []*decl.Witness{{
		File: "row.metal", Line: 16, Function: "rowfloat*",
		Values: map[string][]int64{"fast": {1}, "n": {64}, "pitch": {70}}, Indices: map[string]uint16{"fast": 20}, Inplace: [2]string{"y", "x"},
		Kind: ir.Threadgroups, Grid: [3]int64{5, 1, 1}, Group: [3]uint32{64, 1, 1}, OK: true,
	}}, tests.Witnesses)
	assert.Equal(t, []*decl.Equivalent{{File: "row.metal", Line: 17, Declaration: "row*", Corruption: "require: 1024 -> 1025", Reason: "the rows ; are short"}}, tests.Equivalents)
}

func TestWitnessErrors(t *testing.T) {
	for text, want := range map[string]string{
		"witness a ; b ; c":                                      "@witness: has 3 parts, not FUNCTION ; VALUES ; GRID ; VERDICT",
		"witness a ; ; groups 1 1 1 / 1 1 1 ; yes":               `@witness: the verdict "yes" is neither ok nor refused`,
		"witness a ; n=x ; groups 1 1 1 / 1 1 1 ; ok":            `@witness: n=x: "x" is no integer`,
		"witness a ; n@x=1 ; groups 1 1 1 / 1 1 1 ; ok":          `@witness: n@x=1: "x" is no index of a function constant`,
		"witness a ; ; cells 1 1 1 / 1 1 1 ; ok":                 `@witness: "cells" is neither groups nor threads`,
		"witness a ; ; groups 1 1 / 1 1 1 ; ok":                  `@witness: the grid "groups 1 1 / 1 1 1" is not UNIT x y z / x y z: expected integer`,
		"witness a ; ; groups 1 1 1 / 1 1 1 ; ok":                "@witness: this file declares no kernel a",
		"witness row* ; k=1 ; groups 1 1 1 / 1 1 1 ; ok":         `@witness: kernel rowfloat32 has no constant or argument "k"`,
		"witness row* ; inplace=y,z ; groups 1 1 1 / 1 1 1 ; ok": `@witness: kernel rowfloat32 has no constant or argument "z"`,
		"equivalent row* ; require: 1 -> 2":                      "@equivalent: has 2 parts, not DECLARATION ; CORRUPTION ; REASON",
		"equivalent row* ; require: 1 -> 2 ;":                    "@equivalent: gives no reason",
	} {
		read, err := decl.Parse("row.metal", source(append(row(), text)...))
		require.NoError(t, err)
		_, err = read.Tests()
		assert.EqualError(t, err, "row.metal:16: "+want)
	}
}
