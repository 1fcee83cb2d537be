// Package require has the few assertions that the suite needs, by the names that testify gives them. Each ends the test
// if it fails. The suite is part of a program (mlxreplay doctor), which should not link a whole library for tests.
package require

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
)

// T has the methods by which a test fails and ends.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
}

// that ends the test if the condition is false. The failure says what (a format with args); a message that
// the caller of the assertion gave, about, stands before it.
func that(t T, is bool, about []any, what string, args ...any) {
	t.Helper()
	if is {
		return
	}
	what = fmt.Sprintf(what, args...)
	if len(about) > 0 {
		text := fmt.Sprint(about[0])
		if len(about) > 1 {
			text = fmt.Sprintf(text, about[1:]...)
		}
		what = text + ": " + what
	}
	t.Errorf("%s", what)
	t.FailNow()
}

// Equal requires that the values have the same type and are deeply equal.
func Equal(t T, want, got any, about ...any) {
	t.Helper()
	that(t, reflect.DeepEqual(want, got), about, "got %#v, want %#v", got, want)
}

// NotEqual requires that the values are not deeply equal.
func NotEqual(t T, other, got any, about ...any) {
	t.Helper()
	that(t, !reflect.DeepEqual(other, got), about, "got %#v, which must not be", got)
}

// True requires that the condition holds.
func True(t T, is bool, about ...any) { t.Helper(); that(t, is, about, "got false, want true") }

// False requires that the condition does not hold.
func False(t T, is bool, about ...any) { t.Helper(); that(t, !is, about, "got true, want false") }

// NoError requires that there is no error.
func NoError(t T, err error, about ...any) { t.Helper(); that(t, err == nil, about, "error: %v", err) }

// Error requires that there is an error.
func Error(t T, err error, about ...any) { t.Helper(); that(t, err != nil, about, "there is no error") }

// ErrorIs requires that err is target or wraps it.
func ErrorIs(t T, err, target error, about ...any) {
	t.Helper()
	that(t, errors.Is(err, target), about, "the error is %v, not %v", err, target)
}

// ErrorContains requires an error whose text contains words.
func ErrorContains(t T, err error, words string, about ...any) {
	t.Helper()
	that(t, err != nil && strings.Contains(err.Error(), words), about, "the error is %v, without %q", err, words)
}

// Zero requires the zero value of a type.
func Zero(t T, got any, about ...any) {
	t.Helper()
	that(t, got == nil || reflect.ValueOf(got).IsZero(), about, "got %#v, want zero", got)
}

// Len requires that a slice, map or string has length n.
func Len(t T, list any, n int, about ...any) {
	t.Helper()
	got := reflect.ValueOf(list).Len()
	that(t, got == n, about, "there are %d, want %d", got, n)
}

// Empty requires that a slice, map or string has length 0.
func Empty(t T, list any, about ...any) { t.Helper(); Len(t, list, 0, about...) }

// ordered has the types of numbers that are compared.
type ordered interface {
	~int | ~int64 | ~uint64 | ~float64
}

// Less requires that got < limit.
func Less[N ordered](t T, got, limit N, about ...any) {
	t.Helper()
	that(t, got < limit, about, "%v is not less than %v", got, limit)
}

// GreaterOrEqual requires that got ≥ limit.
func GreaterOrEqual[N ordered](t T, got, limit N, about ...any) {
	t.Helper()
	that(t, got >= limit, about, "%v is less than %v", got, limit)
}

// Positive requires that got > 0.
func Positive[N ordered](t T, got N, about ...any) {
	t.Helper()
	that(t, got > 0, about, "%v is not positive", got)
}

// InDelta requires that the numbers differ by at most delta.
func InDelta(t T, want, got any, delta float64, about ...any) {
	t.Helper()
	that(t, math.Abs(number(want)-number(got)) <= delta, about, "got %v, want %v ± %v", got, want, delta)
}

func number(v any) float64 {
	r := reflect.ValueOf(v)
	if r.CanInt() {
		return float64(r.Int())
	}
	return r.Float()
}

// Eventually checks a condition at intervals of every, and requires that it holds within the time.
func Eventually(t T, is func() bool, within, every time.Duration, about ...any) {
	t.Helper()
	for end := time.Now().Add(within); !is(); time.Sleep(every) {
		that(t, !time.Now().After(end), about, "is not so")
	}
}
