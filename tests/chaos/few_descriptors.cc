#include "tests/chaos/few_descriptors.h"

#include <sys/resource.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/fs/file_descriptor.h"
#include "tests/chaos/stranger_connections.h"

namespace lockstep::test {
namespace {

// The process may close a descriptor or two after its limit was lowered.
constexpr int kStrangers = 16;

rlim_t LowestFreeDescriptor(pid_t pid) {
  rlim_t number = 0;
  std::error_code none;
  while (std::filesystem::is_symlink(absl::StrCat("/proc/", pid, "/fd/", number), none)) ++number;
  return number;
}

class FewDescriptors : public OngoingFault {
 public:
  FewDescriptors(pid_t pid, const std::string& address) : pid_(pid) {
    has_limit_ = prlimit(pid_, RLIMIT_NOFILE, nullptr, &before_) == 0;
    if (!has_limit_) return;  // it has just ended
    const rlimit few = {.rlim_cur = LowestFreeDescriptor(pid_), .rlim_max = before_.rlim_max};
    is_limited_ = prlimit(pid_, RLIMIT_NOFILE, &few, nullptr) == 0;
    strangers_ = ConnectTo(address, kStrangers);
  }
  void Heal() override {
    if (has_limit_) prlimit(pid_, RLIMIT_NOFILE, &before_, nullptr);
    strangers_.clear();
  }
  std::string defect() const override {
    return is_limited_ || !has_limit_ ? "" : "the limit of its descriptors could not be set";
  }

 private:
  const pid_t pid_;
  bool has_limit_ = false;
  bool is_limited_ = false;
  rlimit before_{};
  std::vector<FileDescriptor> strangers_;
};

}  // namespace

std::unique_ptr<OngoingFault> TakeDescriptors(pid_t pid, const std::string& address) {
  return std::make_unique<FewDescriptors>(pid, address);
}

}  // namespace lockstep::test
