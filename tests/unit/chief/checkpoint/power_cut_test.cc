// The power goes at any moment of several saves: only what was synced is sure to be there.
#include <catch2/catch.hpp>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/support/disk_faults.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/checkpoint/disk_model.h"
#include "tests/unit/chief/checkpoint/saving_job.h"

namespace lockstep::chief {
namespace {

using test::DiskChanges;
using test::Remains;
using test::SetDiskFaults;
using test::TemporaryFolder;

constexpr int kRandomRemains = 4;

struct Acknowledged {
  size_t changes = 0;  // that had been made
  int64_t step = 0;
};

// The first save, one after it, one of the same step, one that fails, and others after it.
std::vector<Acknowledged> MakeSaves(const TemporaryFolder& root) {
  SetDiskFaults(absl::StrCat(test::NoSyncsBelow(root.path()), ";", root.Path("ckpt-3"),
                             ",write,shard-1,1,EIO"));
  SavingJob job(root.path(), 1, /*keep_last=*/1);
  REQUIRE(job.Take().ok());
  std::vector<Acknowledged> acknowledged;
  for (const int64_t step : {1, 2, 2, 3, 4, 5}) {
    const bool is_saved = job.Save(step).ok();
    REQUIRE(is_saved == (step != 3));
    if (is_saved) acknowledged.push_back({DiskChanges().size(), step});
  }
  return acknowledged;
}

void CheckRemains(const test::DiskModel& disk, const Remains& remains, int64_t acknowledged) {
  const TemporaryFolder after(TemporaryFolder::kInMemory);
  disk.Restore(after.path(), remains);
  SetDiskFaults(test::NoSyncsBelow(after.path()));
  const absl::StatusOr<int64_t> newest = NewestSound(after.path());
  INFO(newest.status());
  if (acknowledged > 0) {
    REQUIRE(newest.ok());
    REQUIRE(*newest >= acknowledged);
  }
  // What is left is in nobody's way.
  SavingJob job(after.path(), 2, /*keep_last=*/1);
  const absl::Status taken = job.Take();
  INFO(taken);
  REQUIRE(taken.ok());
  const absl::Status saved = job.Save(9).status();
  INFO(saved);
  REQUIRE(saved.ok());
  REQUIRE(*NewestSound(after.path()) == 9);
}

TEST_CASE("whenever the power goes, the newest checkpoint that was told of is there") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  const std::vector<Acknowledged> acknowledged = MakeSaves(root);
  const std::vector<test::DiskChange> changes = DiskChanges();
  const auto yes = [] { return true; };
  const auto no = [] { return false; };
  std::minstd_rand random(1);
  const auto perhaps = [&] { return random() % 2 == 0; };
  std::vector<Remains> all = {{yes, yes, true}, {yes, yes, false}, {no, no, false},
                              {yes, no, false}, {no, yes, false},  {no, no, true}};
  for (int i = 0; i < kRandomRemains; ++i) all.push_back({perhaps, perhaps, i % 2 == 0});

  test::DiskModel disk(root.path());
  size_t told = 0;
  for (size_t made = 0; made <= changes.size(); ++made) {
    if (made > 0) disk.Apply(changes[made - 1]);
    while (told < acknowledged.size() && acknowledged[told].changes <= made) ++told;
    const int64_t newest = told == 0 ? 0 : acknowledged[told - 1].step;
    const std::string last = made == 0 ? "" : changes[made - 1].operation + changes[made - 1].path;
    for (size_t i = 0; i < all.size(); ++i) {
      CAPTURE(made, last, i, newest);
      CheckRemains(disk, all[i], newest);
    }
  }
  WARN(changes.size() << " changes, " << all.size() << " remains of each");
  CHECK(changes.size() > 100);
}

}  // namespace
}  // namespace lockstep::chief
