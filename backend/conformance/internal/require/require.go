// Package require has the assertions of package assert, but ends the test if one fails.
package require

import (
	"time"

	"github.com/mlxc/mlxc/backend/conformance/internal/assert"
)

// T has the methods by which a test fails and ends.
type T interface {
	assert.T
	FailNow()
}

func must(t T, is bool) {
	t.Helper()
	if !is {
		t.FailNow()
	}
}

// Equal is [assert.Equal], and ends the test if it fails; the other functions are alike.
func Equal(t T, want, got any, about ...any) {
	t.Helper()
	must(t, assert.Equal(t, want, got, about...))
}

func True(t T, is bool, about ...any) { t.Helper(); must(t, assert.True(t, is, about...)) }

func NoError(t T, err error, about ...any) { t.Helper(); must(t, assert.NoError(t, err, about...)) }

func Error(t T, err error, about ...any) { t.Helper(); must(t, assert.Error(t, err, about...)) }

func ErrorIs(t T, err, target error, about ...any) {
	t.Helper()
	must(t, assert.ErrorIs(t, err, target, about...))
}

func ErrorContains(t T, err error, words string, about ...any) {
	t.Helper()
	must(t, assert.ErrorContains(t, err, words, about...))
}

func Len(t T, list any, n int, about ...any) { t.Helper(); must(t, assert.Len(t, list, n, about...)) }

func InDelta(t T, want, got any, delta float64, about ...any) {
	t.Helper()
	must(t, assert.InDelta(t, want, got, delta, about...))
}

// Eventually checks a condition at intervals of every, and ends the test if it does not hold within the time.
func Eventually(t T, is func() bool, within, every time.Duration, about ...any) {
	t.Helper()
	for end := time.Now().Add(within); !is(); time.Sleep(every) {
		if time.Now().After(end) {
			must(t, assert.True(t, false, about...))
		}
	}
}
