#include "couplet/engine.h"

namespace couplet {

const char* name(StopReason reason) {
  switch (reason) {
    case StopReason::none: return "none";
    case StopReason::end_of_turn: return "end_of_turn";
    case StopReason::stop_text: return "stop_text";
    case StopReason::max_tokens: return "max_tokens";
    case StopReason::context_full: return "context_full";
    case StopReason::cancelled: return "cancelled";
    case StopReason::numeric_error: return "numeric_error";
    case StopReason::cache_range: return "cache_range";
  }
  return "?";
}

const char* name(Stage stage) { return stage == Stage::prefill ? "prefill" : "decode"; }

const char* name(Precision precision) { return precision == Precision::fast ? "fast" : "fine"; }

const char* name(PackedCopyState state) {
  switch (state) {
    case PackedCopyState::none: return "none";
    case PackedCopyState::absent: return "absent";
    case PackedCopyState::present: return "present";
    case PackedCopyState::mapped: return "mapped";
    case PackedCopyState::written: return "written";
    case PackedCopyState::failed: return "failed";
  }
  return "?";
}

const char* name(CacheFormat format) { return format == CacheFormat::q16 ? "q16" : "f16"; }

}  // namespace couplet
