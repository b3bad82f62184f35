// copy_safetensors IN OUT: reads a safetensors file and writes its tensors again, last first, so
// that another implementation of the format can compare.
#include <cstdio>
#include <vector>

#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/safetensors_file.h"
#include "common/checkpoint/safetensors_writer.h"

namespace {

absl::Status CopyTensors(const std::string& from, const std::string& to) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, lockstep::SafetensorsFile::Open(from));
  std::vector<lockstep::Tensor> values;
  std::vector<lockstep::NamedTensor> named;
  for (auto entry = file.entries().rbegin(); entry != file.entries().rend(); ++entry) {
    values.emplace_back(entry->dtype, entry->shape);
    LOCKSTEP_RETURN_IF_ERROR(file.Read(*entry, values.back().view().bytes()).status());
    named.push_back({entry->name, values.back().view()});
  }
  return lockstep::WriteSafetensors(to, named).status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: copy_safetensors IN OUT\n");
    return static_cast<int>(lockstep::ExitCode::kUsage);
  }
  const absl::Status status = CopyTensors(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return static_cast<int>(lockstep::ExitCodeFor(status));
}
