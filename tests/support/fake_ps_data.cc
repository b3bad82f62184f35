#include "tests/support/fake_ps_data.h"

namespace lockstep {

void FakePsData::Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                      Callback<PushReply> done) {
  std::string bytes;
  for (const auto& span : payload)
    bytes.append(reinterpret_cast<const char*>(span.data()), span.size());
  done(on_push(header, bytes));
}

}  // namespace lockstep
