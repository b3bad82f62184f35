#include "common/wire/message_splitter.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "common/tensor/segmented_reader.h"
#include "proto/ps.pb.h"

namespace lockstep::wire {
namespace {

using Random = std::mt19937_64;

size_t Below(Random* random, size_t limit) {
  return std::uniform_int_distribution<size_t>(0, limit - 1)(*random);
}

std::string RandomBytes(Random* random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

Bytes View(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// The same bytes cut at random, empty pieces included.
std::vector<Bytes> Cut(const std::string& message, Random* random) {
  std::vector<Bytes> pieces;
  Bytes rest = View(message);
  while (!rest.empty()) {
    const size_t size = Below(random, std::min<size_t>(rest.size(), 9) + 1);
    pieces.push_back(rest.first(size));
    rest = rest.subspan(size);
  }
  return pieces;
}

std::string Join(const std::vector<Bytes>& pieces) {
  std::string joined;
  for (const Bytes& piece : pieces)
    joined.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return joined;
}

PushRequest RandomPush(Random* random) {
  PushRequest push;
  push.mutable_worker()->set_job((*random)());
  push.mutable_worker()->set_worker(static_cast<uint32_t>((*random)()));
  push.set_push_seq((*random)() >> Below(random, 64));
  push.set_local_step(static_cast<int64_t>((*random)()));
  for (size_t i = Below(random, 4); i > 0; --i) {
    PushPiece* piece = push.add_pieces();
    piece->set_variable(static_cast<uint32_t>(i));
    piece->set_dtype(FLOAT32);
    piece->add_dims(static_cast<int64_t>(Below(random, 1000)));
    piece->set_size(Below(random, 1000));
  }
  push.set_ask(Below(random, 2) == 1);
  push.set_payload(RandomBytes(random, Below(random, 300)));
  return push;
}

// What the generated parser makes of `message` is what Split and the parser must make of it,
// however it is cut.
void CheckLikeGeneratedParser(const std::string& message, Random* random) {
  PushRequest expected;
  const bool sound = expected.ParseFromString(message);
  const std::vector<Bytes> pieces = Cut(message, random);
  const auto split = Split(pieces);
  PushRequest header;
  const bool ours = split.ok() && header.ParseFromString(split->header);
  CAPTURE(absl::BytesToHexString(message), split.status().ToString());
  REQUIRE(ours == sound);
  if (!sound) return;
  CHECK(Join(split->payload) == expected.payload());
  CHECK(split->payload_bytes == expected.payload().size());
  expected.clear_payload();
  CHECK(header.SerializeAsString() == expected.SerializeAsString());
}

std::string Delimited(int field, const std::string& bytes) {
  REQUIRE(bytes.size() < 128);
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

TEST_CASE("A split message is what the generated parser reads, however it is cut") {
  Random random(1);
  for (int i = 0; i < 300; ++i)
    CheckLikeGeneratedParser(RandomPush(&random).SerializeAsString(), &random);
}

TEST_CASE("Fields may come in any order") {
  Random random(2);
  for (int i = 0; i < 200; ++i) {
    // Concatenated messages merge: the payload of the first stands in the middle of the whole.
    std::string message;
    for (size_t parts = 1 + Below(&random, 3); parts > 0; --parts)
      message += RandomPush(&random).SerializeAsString();
    CheckLikeGeneratedParser(message, &random);
  }
}

TEST_CASE("Of several payloads the last one counts") {
  const std::string message =
      Delimited(15, "first") + std::string("\x10\x07") + Delimited(15, "last");
  const std::vector<Bytes> pieces = {View(message)};
  const auto split = Split(pieces);
  REQUIRE(split.ok());
  CHECK(Join(split->payload) == "last");
  CHECK(split->header == "\x10\x07");
  const std::string emptied = message + Delimited(15, "");
  CHECK(Split(std::vector<Bytes>{View(emptied)})->payload.empty());
}

TEST_CASE("Every truncation of a message is refused or read like the generated parser does") {
  Random random(3);
  for (int i = 0; i < 10; ++i) {
    const std::string message = RandomPush(&random).SerializeAsString();
    for (size_t size = 0; size < message.size(); ++size)
      CheckLikeGeneratedParser(message.substr(0, size), &random);
  }
}

TEST_CASE("Mutated messages are refused or read like the generated parser does") {
  Random random(4);
  for (int i = 0; i < 20000; ++i) {
    std::string message = RandomPush(&random).SerializeAsString();
    for (size_t n = 1 + Below(&random, 4); n > 0 && !message.empty(); --n) {
      // Mostly near the front, where the structure is.
      const size_t at = Below(&random, std::min<size_t>(message.size(), 60));
      switch (Below(&random, 3)) {
        case 0:
          message[at] = static_cast<char>(random());
          break;
        case 1:
          message.insert(at, RandomBytes(&random, 1 + Below(&random, 3)));
          break;
        default:
          message.erase(at, 1);
      }
    }
    CheckLikeGeneratedParser(message, &random);
  }
}

TEST_CASE("Unknown fields of every wire type are passed over, a payload inside a group too") {
  Random random(5);
  const std::string group = "\xa3\x06" + Delimited(15, "not ours") + "\xa4\x06";  // field 100
  const std::string message = std::string("\x98\x06\x05", 3) +                    // 99, varint
                              std::string("\xa1\x06\1\2\3\4\5\6\7\x08", 10) +     // 100, fixed64
                              group + std::string("\xad\x06\1\2\3\4", 6) +        // 101, fixed32
                              "\x78\x05" +                                        // 15, a varint
                              Delimited(15, "ours");
  CheckLikeGeneratedParser(message, &random);
  const std::vector<Bytes> pieces = {View(message)};
  CHECK(Join(Split(pieces)->payload) == "ours");
}

TEST_CASE("Groups that nest for ever are refused") {
  Random random(6);
  for (size_t depth : {1, 50, 99, 100, 101, 5000}) {
    std::string message;
    for (size_t i = 0; i < depth; ++i) message += "\xa3\x06";
    for (size_t i = 0; i < depth; ++i) message += "\xa4\x06";
    CheckLikeGeneratedParser(message, &random);
  }
}

TEST_CASE("What is refused says where") {
  const std::string message = std::string("\x10\x07") + "\x7a\x7f" + "too short";
  const std::vector<Bytes> pieces = {View(message)};
  const absl::Status status = Split(pieces).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(status.message() == "tensor message: field longer than the message at byte 4");
}

TEST_CASE("A payload prefix and its bytes make the payload field") {
  for (size_t size : {1, 127, 128, 16384, 70000}) {
    PushRequest push;
    push.set_payload(std::string(size, 'x'));
    CHECK(PayloadPrefix(size) + push.payload() == push.SerializeAsString());
  }
}

TEST_CASE("A cursor that is asked for too much moves nothing") {
  const std::string text = "abc";
  const std::vector<Bytes> pieces = {View(text), {}};
  SegmentedReader cursor(pieces);
  std::string copied;
  CHECK_FALSE(cursor.Copy(4, &copied));
  CHECK(cursor.position() == 0);
  CHECK(cursor.Copy(3, &copied));
  CHECK(copied == "abc");
  std::byte byte;
  CHECK_FALSE(cursor.ReadByte(&byte));
}

}  // namespace
}  // namespace lockstep::wire
