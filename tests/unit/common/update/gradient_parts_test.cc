#include "common/update/gradient_parts.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "tests/support/payload_of.h"

namespace lockstep {
namespace {

using lockstep::test::PayloadOf;
using Payload = GradientParts::Payload;

std::vector<float> Counting(size_t size) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

std::vector<float> Elements(const GradientParts& parts, size_t first, size_t count) {
  std::vector<float> values(count);
  parts.Copy(first, count, std::as_writable_bytes(std::span(values)).data());
  return values;
}

TEST_CASE("ranges become whole when their last byte has come, in whatever order") {
  const std::vector<float> values = Counting(10);
  const auto bytes = std::as_bytes(std::span(values));
  GradientParts parts(DType::kFloat32, Shape({10}), 4);
  CHECK(parts.num_ranges() == 3);
  CHECK(parts.num_bytes() == 40);
  std::vector<size_t> whole;
  const auto add = [&](uint64_t offset, uint64_t size) {
    whole.clear();
    parts.Add(offset, size, PayloadOf(bytes.subspan(offset, size), 3), 0,
              [&](size_t range) { whole.push_back(range); });
    return whole;
  };
  CHECK(add(14, 20) == std::vector<size_t>{1});
  CHECK(parts.IsWhole(1));
  CHECK_FALSE(parts.IsWhole(0));
  CHECK(Elements(parts, 4, 4) == std::vector<float>{5, 6, 7, 8});
  CHECK(Elements(parts, 5, 2) == std::vector<float>{6, 7});
  CHECK(add(0, 7).empty());
  CHECK(add(34, 6) == std::vector<size_t>{2});
  CHECK(add(7, 7) == std::vector<size_t>{0});
  CHECK(Elements(parts, 0, 4) == std::vector<float>{1, 2, 3, 4});
  CHECK(Elements(parts, 8, 2) == std::vector<float>{9, 10});
}

TEST_CASE("a part is found behind others in its payload") {
  const std::vector<float> values = Counting(8);
  GradientParts parts(DType::kFloat32, Shape({4}), 4);
  parts.Add(0, 16, PayloadOf(std::as_bytes(std::span(values)), 5), 12, [](size_t) {});
  CHECK(Elements(parts, 0, 4) == std::vector<float>{4, 5, 6, 7});
}

TEST_CASE("what is let go is freed, and what comes for it later is not kept") {
  const std::vector<float> values = Counting(8);
  const auto bytes = std::as_bytes(std::span(values));
  GradientParts parts(DType::kFloat32, Shape({8}), 4);
  auto payload = PayloadOf(bytes, 16);
  const std::weak_ptr<const Payload> watched = payload;
  parts.Add(0, 32, payload, 0, [](size_t) {});
  payload.reset();
  parts.LetGo(0);
  CHECK_FALSE(watched.expired());
  CHECK(Elements(parts, 4, 4) == std::vector<float>{5, 6, 7, 8});
  parts.LetGo(1);
  CHECK(watched.expired());

  GradientParts unwanted(DType::kFloat32, Shape({8}), 4);
  unwanted.LetGo(1);
  auto rest = PayloadOf(bytes.subspan(16), 16);
  const std::weak_ptr<const Payload> watched_rest = rest;
  std::vector<size_t> whole;
  unwanted.Add(16, 16, rest, 0, [&](size_t range) { whole.push_back(range); });
  rest.reset();
  CHECK(watched_rest.expired());
  CHECK(whole == std::vector<size_t>{1});
}

TEST_CASE("random parts of random messages give the gradient back") {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    const size_t size = 1 + random() % 300;
    const std::vector<float> values = Counting(size);
    const auto bytes = std::as_bytes(std::span(values));
    const size_t in_range = 1 + random() % 64;
    GradientParts parts(DType::kFloat32, Shape({static_cast<int64_t>(size)}), in_range);
    std::vector<std::pair<uint64_t, uint64_t>> chunks;
    for (uint64_t at = 0; at < bytes.size();) {
      const uint64_t chunk = std::min<uint64_t>(bytes.size() - at, 1 + random() % 200);
      chunks.emplace_back(at, chunk);
      at += chunk;
    }
    std::ranges::shuffle(chunks, random);
    size_t num_whole = 0;
    for (const auto& [at, chunk] : chunks) {
      const uint64_t before = std::min<uint64_t>(at, random() % 50);
      parts.Add(at, chunk, PayloadOf(bytes.subspan(at - before, before + chunk), 1 + random() % 80),
                before, [&](size_t) { ++num_whole; });
    }
    REQUIRE(num_whole == parts.num_ranges());
    std::vector<float> got;
    for (size_t first = 0; first < size; first += in_range) {
      const auto range = Elements(parts, first, std::min(in_range, size - first));
      got.insert(got.end(), range.begin(), range.end());
    }
    REQUIRE(got == values);
  }
}

}  // namespace
}  // namespace lockstep
