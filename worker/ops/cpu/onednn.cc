#include "worker/ops/cpu/onednn.h"

#include <new>

#include "common/base/check.h"

namespace lockstep::worker::cpu {

OneDnn::OneDnn(Device* device)
    : device_(device), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

void OneDnn::ReserveScratch(size_t bytes) {
  if (bytes <= scratch_size_) return;
  absl::StatusOr<DeviceBuffer> memory = device_->Allocate(bytes);
  if (!memory.ok()) throw std::bad_alloc();
  scratch_ = *std::move(memory);
  scratch_size_ = bytes;
}

Primitive::Primitive(OneDnn* onednn, dnnl::primitive primitive, const Desc& scratchpad,
                     std::initializer_list<std::pair<int, Desc>> operands)
    : onednn_(onednn), primitive_(std::move(primitive)) {
  onednn->ReserveScratch(scratchpad.get_size());
  const auto add = [this](int argument, const Desc& desc) {
    memories_.emplace_back(desc, onednn_->engine(), nullptr);
    arguments_.push_back({argument, memories_.back().get()});
  };
  for (const auto& [argument, desc] : operands) add(argument, desc);
  add(DNNL_ARG_SCRATCHPAD, scratchpad);
}

dnnl::primitive_attr Primitive::Attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

void Primitive::Bind(int argument, const void* data) {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].arg != argument) continue;
    memories_[i].set_data_handle(const_cast<void*>(data));
    return;
  }
  LOCKSTEP_CHECK(!"an operand of this primitive");
}

void Primitive::Run() {
  memories_.back().set_data_handle(onednn_->scratch());
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), onednn_->stream().get(),
                             static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) throw dnnl::error(status, "could not execute a primitive");
}

Layout::Layout(OneDnn* onednn, const Desc& plain, const Desc& wanted, Use use)
    : same_(plain == wanted) {
  if (same_) return;
  const Desc& from = use == Use::kRead ? plain : wanted;
  const Desc& to = use == Use::kRead ? wanted : plain;
  const dnnl::reorder::primitive_desc description(onednn->engine(), from, onednn->engine(), to,
                                                  Primitive::Attributes());
  reorder_ = Primitive(onednn, description, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  own_ = dnnl::memory(wanted, onednn->engine());
}

const void* Layout::Convert(const void* plain) {
  if (same_) return plain;
  reorder_.Bind(DNNL_ARG_FROM, plain);
  reorder_.Bind(DNNL_ARG_TO, own_.get_data_handle());
  reorder_.Run();
  return own_.get_data_handle();
}

void* Layout::Target(void* plain) { return same_ ? plain : own_.get_data_handle(); }

void Layout::Finish(void* plain) {
  if (same_) return;
  reorder_.Bind(DNNL_ARG_FROM, own_.get_data_handle());
  reorder_.Bind(DNNL_ARG_TO, plain);
  reorder_.Run();
}

}  // namespace lockstep::worker::cpu
