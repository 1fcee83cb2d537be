//go:build unix

package softmetal

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSourceName(t *testing.T) {
	for symbol, want := range map[string]string{
		"_ZZL4bestPKfPjRKjjjjE10msl_values":    "values",
		"_ZZ4bestPKfPjRKjjjjE6values":          "values",
		"_ZZ4bestPKfPjRKjjjjE6values_0":        "values",
		"_ZZ4bestPKfE8xsE3barq":                "xsE3barq",
		"_ZZ14layer_norm_oneIfLi4EEvvE6shared": "shared",
		"values":                               "values",
		"_ZZ4bestE":                            "_ZZ4bestE",
		"_ZZ1aE9999":                           "_ZZ1aE9999",
	} {
		assert.Equal(t, want, sourceName(symbol), symbol)
	}
}
