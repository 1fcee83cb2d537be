// What the program that runs cases asks of the runtime that records them.
#pragma once
#include <string>

namespace mlxhost {

// begin starts a case: what MLX sends from here to end is recorded.
void begin();

// name gives the buffer of an array a name; the others are t0, t1, … in the order in which they appear.
void name(const void* buffer, const std::string& name);

// name_of is what a buffer is called.
std::string name_of(const void* buffer);

// end returns what was sent since begin, as elements of a JSON list.
std::string end();

} // namespace mlxhost
