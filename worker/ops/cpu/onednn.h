// oneDNN behind what the ops of this folder need of it: primitives with their operands bound once,
// one scratchpad for all, errors as values.
#pragma once

#include <dnnl.hpp>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/device/device.h"
#include "worker/ops/op_table.h"

namespace lockstep::worker::cpu {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;

inline Desc FloatDesc(const Dims& dims, Tag tag) {
  return Desc(dims, dnnl::memory::data_type::f32, tag);
}

// What the ops of one tower share. Not thread-safe.
class OneDnn : public OpContext {
 public:
  explicit OneDnn(Device* device);  // outlives this

  const dnnl::engine& engine() const { return engine_; }
  const dnnl::stream& stream() const { return stream_; }

  // Makes the scratchpad at least so large. Throws std::bad_alloc.
  void ReserveScratch(size_t bytes);
  void* scratch() const { return scratch_.get(); }

 private:
  Device* const device_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  DeviceBuffer scratch_;
  size_t scratch_size_ = 0;
};

// A primitive and its operands. Operands that move between calls are bound before each Run.
class Primitive {
 public:
  Primitive() = default;
  // `operands`: argument number and layout. The primitive must have been described with attributes
  // from Attributes(). `onednn` outlives this.
  template <typename Description>
  Primitive(OneDnn* onednn, const Description& description,
            std::initializer_list<std::pair<int, Desc>> operands)
      : Primitive(onednn, dnnl::primitive(description.get()), description.scratchpad_desc(),
                  operands) {}

  void Bind(int argument, const void* data);
  // Throws dnnl::error.
  void Run();

  // The scratchpad is ours: oneDNN's own is shared by all primitives made on one thread, so that
  // towers would overwrite each other's.
  static dnnl::primitive_attr Attributes();

 private:
  Primitive(OneDnn* onednn, dnnl::primitive primitive, const Desc& scratchpad,
            std::initializer_list<std::pair<int, Desc>> operands);

  OneDnn* onednn_ = nullptr;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;  // of memories_, in the same order; scratchpad last
};

// A tensor that a primitive wants in a layout of its own, beside the plain one that it has outside.
// Where both are the same nothing is copied.
class Layout {
 public:
  enum class Use { kRead, kWrite };  // by the primitive

  Layout() = default;
  Layout(OneDnn* onednn, const Desc& plain, const Desc& wanted, Use use);

  // kRead: converts and returns what the primitive reads.
  const void* Convert(const void* plain);
  // kWrite: where the primitive writes; after it has run, Finish converts.
  void* Target(void* plain);
  void Finish(void* plain);

 private:
  bool same_ = true;
  dnnl::memory own_;
  Primitive reorder_;
};

// Runs what may throw; the error names `what` was made.
template <typename Result, typename Make>
Result CatchErrors(absl::string_view what, const Make& make) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat(what, ": oneDNN: ", error.what()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": out of memory. Remedy: a smaller batch per tower, or fewer towers"));
  }
}

}  // namespace lockstep::worker::cpu
