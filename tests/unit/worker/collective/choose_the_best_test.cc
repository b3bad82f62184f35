// Which devices and links lead to which op, and what is said about it.
#include "worker/collective/choose_the_best.h"

#include <catch2/catch.hpp>
#include <set>

namespace lockstep::worker {
namespace {

using Kind = CrossTowerOpsKind;

constexpr DeviceId kCpu{0, DeviceKind::kCpu, 0};

std::vector<DeviceId> Gpus(int count) {
  std::vector<DeviceId> gpus;
  for (int i = 0; i < count; ++i) gpus.push_back({0, DeviceKind::kGpu, i});
  return gpus;
}

std::vector<std::vector<int>> Dgx1() {
  return {{1, 2, 3, 4}, {0, 2, 3, 5}, {0, 1, 3, 6}, {0, 1, 2, 7},
          {0, 5, 6, 7}, {1, 4, 6, 7}, {2, 4, 5, 7}, {3, 4, 5, 6}};
}

TEST_CASE("devices that are no GPUs or not visible are reduced to one device") {
  auto mixed = Gpus(2);
  mixed.push_back(kCpu);
  const auto cpu = ChooseTheBest(mixed, {mixed, {}});
  CHECK(cpu.kind == Kind::kReductionToOneDevice);
  REQUIRE(cpu.warnings.size() == 1);
  CHECK_THAT(cpu.warnings[0], Catch::Contains("worker 0 cpu:0"));
  CHECK(cpu.reason == "not all devices are GPUs");

  const auto absent = ChooseTheBest(Gpus(3), {Gpus(2), {}});
  CHECK(absent.kind == Kind::kReductionToOneDevice);
  REQUIRE(absent.warnings.size() == 1);
  CHECK_THAT(absent.warnings[0], Catch::Contains("gpu:2"));
  CHECK(absent.reason == "not all requested devices are visible");

  CHECK(ChooseTheBest(mixed, {Gpus(1), {}}).warnings.size() == 2);
}

TEST_CASE("devices that are not used are named, without a warning") {
  const auto choice = ChooseTheBest(Gpus(2), {Gpus(4), {}});
  CHECK(choice.warnings.empty());
  CHECK(choice.unused == std::vector<DeviceId>{Gpus(4)[2], Gpus(4)[3]});
}

TEST_CASE("GPUs that are linked as those of a DGX-1 take hierarchical copy") {
  const auto choose = [](int devices, const std::vector<std::vector<int>>& links) {
    return ChooseTheBest(Gpus(devices), {Gpus(devices), links});
  };
  CHECK(choose(8, Dgx1()).kind == Kind::kHierarchicalCopy);
  CHECK(choose(8, Dgx1()).num_packs == 8);
  auto to_itself = Dgx1();
  to_itself[3].push_back(3);
  CHECK(choose(8, to_itself).kind == Kind::kHierarchicalCopy);
  auto ten = Dgx1();
  ten.push_back({1});
  ten.push_back({});
  CHECK(choose(10, ten).kind == Kind::kHierarchicalCopy);
  CHECK(choose(10, ten).num_packs == 10);
}

TEST_CASE("all other GPUs take nccl with one pack") {
  const auto choose = [](int devices, const std::vector<std::vector<int>>& links) {
    return ChooseTheBest(Gpus(devices), {Gpus(devices), links});
  };
  for (size_t i = 0; i < 8; ++i) {
    auto one_less = Dgx1();
    one_less[i].pop_back();
    CHECK(choose(8, one_less).kind == Kind::kNccl);
    auto one_more = Dgx1();
    one_more[i].push_back(
        static_cast<int>((i + 5) % 8 == one_more[i][3] ? (i + 6) % 8 : (i + 5) % 8));
    if (std::set<int>(one_more[i].begin(), one_more[i].end()).size() == 5) {
      CHECK(choose(8, one_more).kind == Kind::kNccl);
    }
  }
  CHECK(choose(7, Dgx1()).kind == Kind::kNccl);
  CHECK(choose(8, {}).kind == Kind::kNccl);
  CHECK(choose(1, {}).num_packs == 1);
  CHECK(Name(choose(1, {}).kind) == "nccl");
}

}  // namespace
}  // namespace lockstep::worker
