// The type traits and numeric limits of Metal's library, in C++14.
#pragma once
#pragma clang system_header
#include "types.h"

namespace metal {
template <typename T, T V>
struct integral_constant {
  static constexpr T value = V;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const { return V; }
  constexpr T operator()() const { return V; }
};
template <bool B>
using bool_constant = integral_constant<bool, B>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <bool B, typename T = void>
struct enable_if {};
template <typename T>
struct enable_if<true, T> {
  typedef T type;
};
template <bool B, typename T = void>
using enable_if_t = typename enable_if<B, T>::type;
template <bool B, typename T, typename F>
struct conditional {
  typedef T type;
};
template <typename T, typename F>
struct conditional<false, T, F> {
  typedef F type;
};
template <bool B, typename T, typename F>
using conditional_t = typename conditional<B, T, F>::type;

template <typename T>
struct remove_cv {
  typedef __remove_cv(T) type;
};
template <typename T>
struct remove_const {
  typedef __remove_const(T) type;
};
template <typename T>
struct remove_reference {
  typedef __remove_reference_t(T) type;
};
template <typename T>
struct remove_pointer {
  typedef __remove_pointer(T) type;
};
template <typename T>
struct remove_addrspace {
  typedef T type;
};
template <typename T>
struct decay {
  typedef __decay(T) type;
};
template <typename T>
using remove_cv_t = typename remove_cv<T>::type;
template <typename T>
using remove_const_t = typename remove_const<T>::type;
template <typename T>
using remove_reference_t = typename remove_reference<T>::type;
template <typename T>
using remove_pointer_t = typename remove_pointer<T>::type;
template <typename T>
using remove_addrspace_t = T;
template <typename T>
using remove_cvref_t = remove_cv_t<remove_reference_t<T>>;
template <typename T>
using decay_t = typename decay<T>::type;
template <typename T>
T&& declval();
template <typename F, typename... A>
using invoke_result_t = decltype(declval<F>()(declval<A>()...));

#define MSL_TRAIT1(name, ...)               \
  template <typename T>                     \
  struct name : bool_constant<__VA_ARGS__> {}; \
  template <typename T>                     \
  constexpr bool name##_v = name<T>::value;
#define MSL_TRAIT2(name, ...)               \
  template <typename A, typename B>         \
  struct name : bool_constant<__VA_ARGS__> {}; \
  template <typename A, typename B>         \
  constexpr bool name##_v = name<A, B>::value;
MSL_TRAIT2(is_same, __is_same(A, B))
MSL_TRAIT2(is_convertible, __is_convertible(A, B))
MSL_TRAIT2(is_base_of, __is_base_of(A, B))
MSL_TRAIT1(is_integral, __is_integral(T))
MSL_TRAIT1(
    is_floating_point,
    __is_floating_point(remove_cv_t<T>) || __is_same(remove_cv_t<T>, half) || __is_same(remove_cv_t<T>, bfloat))
MSL_TRAIT1(is_arithmetic, is_integral<T>::value || is_floating_point<T>::value)
MSL_TRAIT1(is_scalar, __is_scalar(T))
MSL_TRAIT1(is_signed, is_floating_point<T>::value || __is_signed(T))
MSL_TRAIT1(is_unsigned, __is_unsigned(T))
MSL_TRAIT1(is_void, __is_void(T))
MSL_TRAIT1(is_pointer, __is_pointer(T))
MSL_TRAIT1(is_reference, __is_reference(T))
MSL_TRAIT1(is_const, __is_const(T))
MSL_TRAIT1(is_enum, __is_enum(T))
MSL_TRAIT1(is_class, __is_class(T))
MSL_TRAIT1(is_trivially_copyable, __is_trivially_copyable(T))
template <typename T, typename... A>
constexpr bool is_constructible_v = __is_constructible(T, A...);

template <typename... T>
struct conjunction : true_type {};
template <typename A, typename... B>
struct conjunction<A, B...> : bool_constant<A::value && conjunction<B...>::value> {};
template <typename... T>
struct disjunction : false_type {};
template <typename A, typename... B>
struct disjunction<A, B...> : bool_constant<A::value || disjunction<B...>::value> {};
template <typename... T>
using _conjunction = conjunction<T...>;
template <typename... T>
using _disjunction = disjunction<T...>;
template <typename T>
struct negation : bool_constant<!T::value> {};

template <typename T>
struct make_unsigned {
  typedef __make_unsigned(T) type;
};
template <typename T>
struct make_signed {
  typedef __make_signed(T) type;
};
template <typename T>
using make_unsigned_t = typename make_unsigned<T>::type;
template <typename T>
using make_signed_t = typename make_signed<T>::type;

template <typename T>
constexpr remove_reference_t<T>&& move(T&& t) {
  return static_cast<remove_reference_t<T>&&>(t);
}
template <typename T>
struct numeric_limits;
#define MSL_INTEGER_LIMITS(T, LOW, HIGH)                      \
  template <>                                                 \
  struct numeric_limits<T> {                                  \
    static constexpr bool is_specialized = true;              \
    static constexpr bool is_signed = T(-1) < T(0);           \
    static constexpr bool is_integer = true;                  \
    static constexpr int digits = sizeof(T) * 8 - is_signed;  \
    static constexpr T min() { return LOW; }                  \
    static constexpr T lowest() { return LOW; }               \
    static constexpr T max() { return HIGH; }                 \
    static constexpr T infinity() { return T(0); }            \
    static constexpr T epsilon() { return T(0); }             \
  };
MSL_INTEGER_LIMITS(char, -128, 127)
MSL_INTEGER_LIMITS(int8_t, -128, 127)
MSL_INTEGER_LIMITS(uchar, 0, 255)
MSL_INTEGER_LIMITS(short, -32768, 32767)
MSL_INTEGER_LIMITS(ushort, 0, 65535)
MSL_INTEGER_LIMITS(int, INT_MIN, INT_MAX)
MSL_INTEGER_LIMITS(uint, 0, UINT_MAX)
MSL_INTEGER_LIMITS(long, -9223372036854775807l - 1, 9223372036854775807l)
MSL_INTEGER_LIMITS(ulong, 0, 18446744073709551615ul)
template <>
struct numeric_limits<bool> {
  static constexpr bool is_specialized = true, is_signed = false, is_integer = true;
  static constexpr int digits = 1;
  static constexpr bool min() { return false; }
  static constexpr bool lowest() { return false; }
  static constexpr bool max() { return true; }
};
#define MSL_FLOAT_LIMITS(T, DIGITS, MIN, MAX, EPSILON)                            \
  template <>                                                                     \
  struct numeric_limits<T> {                                                      \
    static constexpr bool is_specialized = true, is_signed = true, is_integer = false; \
    static constexpr int digits = DIGITS;                                         \
    static constexpr T min() { return T(MIN); }                                   \
    static constexpr T lowest() { return T(-MAX); }                               \
    static constexpr T max() { return T(MAX); }                                   \
    static constexpr T infinity() { return T(__builtin_inff()); }                 \
    static constexpr T quiet_NaN() { return T(__builtin_nanf("")); }              \
    static constexpr T epsilon() { return T(EPSILON); }                           \
  };
MSL_FLOAT_LIMITS(float, 24, 1.175494351e-38f, 3.402823466e+38f, 1.192092896e-07f)
MSL_FLOAT_LIMITS(half, 11, 6.103515625e-05f, 65504.0f, 0.0009765625f)
MSL_FLOAT_LIMITS(bfloat, 8, 1.175494351e-38f, 3.38953139e+38f, 0.0078125f)
} // namespace metal
