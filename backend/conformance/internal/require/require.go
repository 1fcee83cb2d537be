// Package require has assertions without which a test does not go on: those of package assert.
package require

import (
	"time"

	"github.com/mlxc/mlxc/backend/conformance/internal/assert"
)

// T is what a test fails and ends by.
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

// Equal is that of package assert, and so are the others.
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

// Eventually wants a condition to become so within a time, and looks from time to time.
func Eventually(t T, is func() bool, within, every time.Duration, about ...any) {
	t.Helper()
	for end := time.Now().Add(within); !is(); time.Sleep(every) {
		if time.Now().After(end) {
			must(t, assert.True(t, false, about...))
		}
	}
}
