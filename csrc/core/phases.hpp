// The phases of a program over shared memory, each run by all threads of a block and ended by a barrier: `prepare`,
// which some programs have, `load`, `store`.
#pragma once

#include <type_traits>

namespace swizzle {

/// Whether a program has a phase before `load`, which it says by a constant kHasPreparation.
template <class Program, class = void>
inline constexpr bool has_preparation = false;
template <class Program>
inline constexpr bool has_preparation<Program, std::void_t<decltype(Program::kHasPreparation)>> =
    Program::kHasPreparation;

}  // namespace swizzle
