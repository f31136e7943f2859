// Instantiates the formula for the sizes given on the command line: the build must fail where it is not defined.
#include "core/chunk_swizzle.hpp"

int main() { return swizzle::ChunkedTile<ELEMENT_BYTES, CHUNK_BYTES, COLS>::LineForm::apply(0); }
