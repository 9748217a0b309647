#pragma once
// Start here. An Engine owns the weights, the cache and the threads. Requests are submitted from any thread; one thread
// calls step() in a loop. A step runs one batch, made of prompt chunks (prefill) and of one row for each sequence in
// decode, and returns what became of it.
//
//   auto checkpoint = couplet::Checkpoint::open("model.gguf");
//   auto engine = couplet::Engine::load(checkpoint, {});
//   engine->submit(request);
//   while (engine->has_work()) for (const couplet::Event& event : engine->step()) std::cout << event.text;

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "couplet/checkpoint.h"
#include "couplet/error.h"
#include "couplet/packed_copy.h"
#include "couplet/precision.h"
#include "couplet/request.h"
#include "couplet/stats.h"

namespace couplet {

struct EngineOptions {
  int num_threads = 0;       // at most what the cgroup quota and the affinity allow: more would only take turns; 0: so many
  Precision precision = Precision::fast;
  CacheFormat cache_format = CacheFormat::q16;
  int context = 0;           // positions a sequence may hold; 0: the model's, lowered to what memory allows
  int chunk_rows = 512;      // prompt rows run in one step, over all sequences
  int max_sequences = 16;    // running at once; more wait
  int max_queue = 0;         // waiting; submit() refuses more; 0: no bound
  double itl_target_ms = 0;  // what a step may take while sequences decode; 0: twice what it takes without prompt rows
  std::uint64_t cache_bytes = 0;  // of the page pool; 0: room for a few full contexts, within free memory
  std::string packed_folder = "";  // keeps a packed copy of large weights there, for quick starts; "": keeps none
  std::string kernels = "";  // "": the best level this machine has, or COUPLET_KERNELS; else exactly this one
};

// What was decided at load.
struct EngineInfo {
  std::string kernels;  // "avx512"
  int num_threads = 0;
  int context = 0;
  bool context_lowered = false;  // below the model's own, for want of memory
  Precision precision = Precision::fast;
  CacheFormat cache_format = CacheFormat::q16;
  int numerics_version = 0;
  std::uint64_t weights_bytes = 0;  // packed
  PackedCopy packed_copy;           // on disk: mapped, written, failed or none
  std::uint64_t cache_bytes = 0;    // pages reserved, touched only when used
  double load_ms = 0;
};

class Engine {
 public:
  static std::unique_ptr<Engine> load(std::shared_ptr<const Checkpoint> checkpoint, const EngineOptions& options);
  virtual ~Engine() = default;

  // From any thread. Refuses, with both numbers, what can't be run: nothing is ever cut.
  virtual SubmitResult submit(Request request) = 0;
  virtual void cancel(RequestId id) = 0;
  virtual bool has_work() const = 0;

  // From one thread. Never throws; the events and the record stay valid until the next call.
  virtual std::span<const Event> step() = 0;
  virtual const StepRecord& last_step() const = 0;

  virtual const EngineInfo& info() const = 0;
  virtual const Checkpoint& checkpoint() const = 0;
};

}  // namespace couplet
