// The headers that MLX puts before the kernels that it compiles at run time. Nothing is compiled here: a name will do.
namespace mlx::core::metal {

#define SOURCE(NAME) \
  const char* NAME() { return #NAME; }

SOURCE(binary_ops)
SOURCE(gather)
SOURCE(gather_axis)
SOURCE(gather_front)
SOURCE(hadamard)
SOURCE(masked_scatter)
SOURCE(reduce_utils)
SOURCE(scatter)
SOURCE(scatter_axis)
SOURCE(ternary_ops)
SOURCE(unary_ops)
SOURCE(utils)

} // namespace mlx::core::metal
