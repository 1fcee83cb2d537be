// Package assert has the few assertions that the suite needs, by the names that testify gives them. The suite is
// part of a program (mlxreplay doctor), which should not link a whole library for tests.
package assert

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// T has the methods by which a test fails.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// fail fails the test with the text what, after the caller's message about, and returns false.
func fail(t T, what string, about []any) bool {
	t.Helper()
	if len(about) > 0 {
		text := fmt.Sprint(about[0])
		if len(about) > 1 {
			text = fmt.Sprintf(text, about[1:]...)
		}
		what = text + ": " + what
	}
	t.Errorf("%s", what)
	return false
}

// Equal fails the test unless the values have the same type and are deeply equal.
func Equal(t T, want, got any, about ...any) bool {
	t.Helper()
	return reflect.DeepEqual(want, got) || fail(t, fmt.Sprintf("got %#v, want %#v", got, want), about)
}

// NotEqual fails the test if the values are deeply equal.
func NotEqual(t T, other, got any, about ...any) bool {
	t.Helper()
	return !reflect.DeepEqual(other, got) || fail(t, fmt.Sprintf("got %#v, which must not be", got), about)
}

// True fails the test unless the condition holds.
func True(t T, is bool, about ...any) bool { t.Helper(); return is || fail(t, "is not so", about) }

// False fails the test if the condition holds.
func False(t T, is bool, about ...any) bool { t.Helper(); return !is || fail(t, "is so", about) }

// NoError fails the test if there is an error.
func NoError(t T, err error, about ...any) bool {
	t.Helper()
	return err == nil || fail(t, fmt.Sprintf("error: %v", err), about)
}

// Error fails the test unless there is an error.
func Error(t T, err error, about ...any) bool {
	t.Helper()
	return err != nil || fail(t, "there is no error", about)
}

// ErrorIs fails the test unless err is target or wraps it.
func ErrorIs(t T, err, target error, about ...any) bool {
	t.Helper()
	return errors.Is(err, target) || fail(t, fmt.Sprintf("the error is %v, not %v", err, target), about)
}

// ErrorContains fails the test unless there is an error whose text contains words.
func ErrorContains(t T, err error, words string, about ...any) bool {
	t.Helper()
	return err != nil && strings.Contains(err.Error(), words) || fail(t, fmt.Sprintf("the error is %v, without %q", err, words), about)
}

// Zero fails the test unless the value is the zero value of its type.
func Zero(t T, got any, about ...any) bool {
	t.Helper()
	return got == nil || reflect.ValueOf(got).IsZero() || fail(t, fmt.Sprintf("got %#v, want zero", got), about)
}

// Len fails the test unless a slice, map or string has length n.
func Len(t T, list any, n int, about ...any) bool {
	t.Helper()
	got := reflect.ValueOf(list).Len()
	return got == n || fail(t, fmt.Sprintf("there are %d, want %d", got, n), about)
}

// Empty fails the test unless a slice, map or string has length 0.
func Empty(t T, list any, about ...any) bool { t.Helper(); return Len(t, list, 0, about...) }

// ordered has the types of numbers that are compared.
type ordered interface {
	~int | ~int64 | ~uint64 | ~float64
}

// Less fails the test unless got < limit.
func Less[N ordered](t T, got, limit N, about ...any) bool {
	t.Helper()
	return got < limit || fail(t, fmt.Sprintf("%v is not less than %v", got, limit), about)
}

// GreaterOrEqual fails the test unless got ≥ limit.
func GreaterOrEqual[N ordered](t T, got, limit N, about ...any) bool {
	t.Helper()
	return got >= limit || fail(t, fmt.Sprintf("%v is less than %v", got, limit), about)
}

// Positive fails the test unless got > 0.
func Positive[N ordered](t T, got N, about ...any) bool {
	t.Helper()
	return got > 0 || fail(t, fmt.Sprintf("%v is not positive", got), about)
}

// InDelta fails the test unless the numbers differ by at most delta.
func InDelta(t T, want, got any, delta float64, about ...any) bool {
	t.Helper()
	far := math.Abs(number(want) - number(got))
	return far <= delta || fail(t, fmt.Sprintf("got %v, want %v ± %v", got, want, delta), about)
}

func number(v any) float64 {
	r := reflect.ValueOf(v)
	if r.CanInt() {
		return float64(r.Int())
	}
	return r.Float()
}
