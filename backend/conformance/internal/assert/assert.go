// Package assert has the few assertions that the suite needs, by the names that testify gives them: the suite is
// part of a program (mlxreplay doctor), which has no use for the rest of a library for tests.
package assert

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// T is what a test fails by.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// fail says what is wrong, behind what the test says that it looked at.
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

// Equal wants two values of one type that are deeply equal.
func Equal(t T, want, got any, about ...any) bool {
	t.Helper()
	return reflect.DeepEqual(want, got) || fail(t, fmt.Sprintf("got %#v, want %#v", got, want), about)
}

// NotEqual wants two that are not.
func NotEqual(t T, other, got any, about ...any) bool {
	t.Helper()
	return !reflect.DeepEqual(other, got) || fail(t, fmt.Sprintf("got %#v, which must not be", got), about)
}

// True wants a condition.
func True(t T, is bool, about ...any) bool { t.Helper(); return is || fail(t, "is not so", about) }

// False wants that a condition is not so.
func False(t T, is bool, about ...any) bool { t.Helper(); return !is || fail(t, "is so", about) }

// NoError wants no error.
func NoError(t T, err error, about ...any) bool {
	t.Helper()
	return err == nil || fail(t, fmt.Sprintf("error: %v", err), about)
}

// Error wants one.
func Error(t T, err error, about ...any) bool {
	t.Helper()
	return err != nil || fail(t, "there is no error", about)
}

// ErrorIs wants an error that is or wraps another.
func ErrorIs(t T, err, target error, about ...any) bool {
	t.Helper()
	return errors.Is(err, target) || fail(t, fmt.Sprintf("the error is %v, not %v", err, target), about)
}

// ErrorContains wants an error with some words in its text.
func ErrorContains(t T, err error, words string, about ...any) bool {
	t.Helper()
	return err != nil && strings.Contains(err.Error(), words) || fail(t, fmt.Sprintf("the error is %v, without %q", err, words), about)
}

// Zero wants the zero value of a type.
func Zero(t T, got any, about ...any) bool {
	t.Helper()
	return got == nil || reflect.ValueOf(got).IsZero() || fail(t, fmt.Sprintf("got %#v, want zero", got), about)
}

// Len wants a slice, map or text of a length.
func Len(t T, list any, n int, about ...any) bool {
	t.Helper()
	got := reflect.ValueOf(list).Len()
	return got == n || fail(t, fmt.Sprintf("there are %d, want %d", got, n), about)
}

// Empty wants a slice, map or text of nothing.
func Empty(t T, list any, about ...any) bool { t.Helper(); return Len(t, list, 0, about...) }

// ordered are the numbers that are compared.
type ordered interface {
	~int | ~int64 | ~uint64 | ~float64
}

// Less wants a number below another.
func Less[N ordered](t T, got, limit N, about ...any) bool {
	t.Helper()
	return got < limit || fail(t, fmt.Sprintf("%v is not less than %v", got, limit), about)
}

// GreaterOrEqual wants a number that is not below another.
func GreaterOrEqual[N ordered](t T, got, limit N, about ...any) bool {
	t.Helper()
	return got >= limit || fail(t, fmt.Sprintf("%v is less than %v", got, limit), about)
}

// Positive wants a number above zero.
func Positive[N ordered](t T, got N, about ...any) bool {
	t.Helper()
	return got > 0 || fail(t, fmt.Sprintf("%v is not positive", got), about)
}

// InDelta wants a number so near to another.
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
