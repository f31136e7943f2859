// Which copy of the library owns the operators, where a process has several.
#pragma once

#include <string>
#include <vector>

namespace swizzle {

/// True in the first copy of the library that this process loaded (the Python package's, one that a C++ program links,
/// one in another folder). Every registration asks it first: torch ends the process where an operator is defined twice,
/// so a later copy registers nothing, says so in a warning, and its functions call the operators of the first.
bool owns_operators();

/// The file that this code was loaded from and its version: what swizzle::_library() tells of the owner.
std::vector<std::string> identify_library();

}  // namespace swizzle
