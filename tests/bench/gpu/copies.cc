#include <algorithm>
#include <memory>
#include <string>

#include "common/base/status_macros.h"
#include "common/fs/file_descriptor.h"
#include "common/shm/segment.h"
#include "tests/bench/contest.h"
#include "tests/bench/gpu/gpu.h"
#include "tests/bench/gpu/rows.h"

namespace lockstep::bench::gpu {
namespace {

constexpr size_t kCopyBytes = size_t{256} << 20;
constexpr int kCopies = 4;
constexpr double kCopyTarget = 0.9;

// Memory of the device and of the host: a worker's segment, a ps's as a worker maps it, and pinned.
struct Memory {
  static absl::StatusOr<std::shared_ptr<Memory>> Make() {
    LOCKSTEP_ASSIGN_OR_RETURN(Gpu gpu, Gpu::Open());
    auto memory = std::make_shared<Memory>(std::move(gpu));
    worker::Device& device = *memory->gpu.device();
    LOCKSTEP_ASSIGN_OR_RETURN(memory->on_device, device.Allocate(kCopyBytes));
    LOCKSTEP_ASSIGN_OR_RETURN(memory->pinned, device.AllocatePinned(kCopyBytes));
    LOCKSTEP_ASSIGN_OR_RETURN(memory->own, shm::Segment::Create("lockstep-bench", kCopyBytes));
    std::ranges::fill(memory->own->bytes(), std::byte{1});
    std::fill_n(memory->pinned.get(), kCopyBytes, std::byte{1});
    LOCKSTEP_ASSIGN_OR_RETURN(memory->mapped, shm::Segment::Map(memory->own->descriptor()));
    LOCKSTEP_ASSIGN_OR_RETURN(memory->own_registration, device.RegisterHost(memory->own->bytes()));
    LOCKSTEP_ASSIGN_OR_RETURN(memory->mapped_registration,
                              device.RegisterReadOnly(memory->mapped->bytes()));
    return memory;
  }

  explicit Memory(Gpu gpu) : gpu(std::move(gpu)) {}

  const Gpu gpu;
  worker::DeviceBuffer on_device;
  worker::DeviceBuffer pinned;
  std::shared_ptr<shm::Segment> own;
  std::shared_ptr<const shm::Segment> mapped;
  worker::HostRegistration own_registration;
  worker::HostRegistration mapped_registration;
};

using Copy = void (*)(const Memory& memory);

Contest Copies(const BenchOptions&) {
  const auto memory = std::make_shared<std::shared_ptr<Memory>>();
  const auto rate_of = [memory](Copy copy) -> Measure {
    return [memory, copy]() -> absl::StatusOr<double> {
      if (*memory == nullptr) {
        LOCKSTEP_ASSIGN_OR_RETURN(*memory, Memory::Make());
      }
      const Memory& made = **memory;
      LOCKSTEP_ASSIGN_OR_RETURN(const double seconds, made.gpu.SecondsOf(kCopies, [&] {
        copy(made);
        return absl::OkStatus();
      }));
      return kCopyBytes / seconds / 1e9;
    };
  };
  Contest contest{.unit = "GB/s", .higher_is_better = true, .note = "256 MiB"};
  contest.sides = {
      {"push", "gradients into shared memory", rate_of([](const Memory& m) {
         m.gpu.stream()->CopyToHost(m.own->bytes().data(), m.on_device.get(), kCopyBytes);
       })},
      {"pull", "values out of a ps's shared memory", rate_of([](const Memory& m) {
         m.gpu.stream()->CopyToDevice(m.on_device.get(), m.mapped->bytes().data(), kCopyBytes);
       })},
      {"to_pinned", "a copy into pinned memory", rate_of([](const Memory& m) {
         m.gpu.stream()->CopyToHost(m.pinned.get(), m.on_device.get(), kCopyBytes);
       })},
      {"from_pinned", "a copy out of pinned memory", rate_of([](const Memory& m) {
         m.gpu.stream()->CopyToDevice(m.on_device.get(), m.pinned.get(), kCopyBytes);
       })}};
  contest.comparisons = {{"gpu_push", "push", "to_pinned", kCopyTarget},
                         {"gpu_pull", "pull", "from_pinned", kCopyTarget}};
  return contest;
}

}  // namespace

RowGroup CopyRows() { return AsGroup(Copies); }

}  // namespace lockstep::bench::gpu
