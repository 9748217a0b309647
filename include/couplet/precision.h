#pragma once
// The two options at load that decide bits, and are part of an answer's identity with weights, context and numerics
// version (docs/numerics.md).

namespace couplet {

enum class Precision { fast, fine };  // of activations, rule 3
const char* name(Precision precision);

// How keys and values are kept: q16, keys of 16-bit and values of 8-bit integers (fine: twice 8), multiplied exactly; or
// f16, multiplied in float (rules 6, 7 and 10).
enum class CacheFormat { q16, f16 };
const char* name(CacheFormat format);

}  // namespace couplet
