#include "common/wire/byte_buffer.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "proto/ps.pb.h"

namespace lockstep::wire {
namespace {

std::string Join(const std::vector<Bytes>& spans) {
  std::string joined;
  for (const Bytes& span : spans)
    joined.append(reinterpret_cast<const char*>(span.data()), span.size());
  return joined;
}

std::string Flat(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  REQUIRE(buffer.Dump(&slices).ok());
  std::string flat;
  for (const grpc::Slice& slice : slices)
    flat.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return flat;
}

std::vector<std::byte> Filled(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

PushRequest Header() {
  PushRequest header;
  header.set_push_seq(9);
  header.add_pieces()->set_variable(4);
  return header;
}

TEST_CASE("The generated parser reads what is encoded around a payload") {
  const auto small = Filled(100, 1), large = Filled(100000, 2), edge = Filled(2048, 3);
  const std::vector<Bytes> payload = {small, large, {}, small, small, edge};
  const grpc::ByteBuffer buffer = Encode(Header(), payload, nullptr);
  PushRequest expected = Header();
  expected.set_payload(Join(payload));
  CHECK(Flat(buffer) == expected.SerializeAsString());
}

TEST_CASE("Long spans are referenced, not copied, and their owner lives as long as the buffer") {
  const auto tensor = std::make_shared<std::vector<std::byte>>(Filled(5000, 7));
  {
    const std::vector<Bytes> payload = {*tensor};
    const grpc::ByteBuffer buffer = Encode(Header(), payload, tensor);
    CHECK(tensor.use_count() > 1);
    std::vector<grpc::Slice> slices;
    REQUIRE(buffer.Dump(&slices).ok());
    CHECK(reinterpret_cast<const std::byte*>(slices.back().begin()) == tensor->data());
  }
  CHECK(tensor.use_count() == 1);
}

TEST_CASE("A message without payload has no payload field") {
  const grpc::ByteBuffer buffer = Encode(Header(), std::vector<Bytes>{}, nullptr);
  CHECK(Flat(buffer) == Header().SerializeAsString());
  PushRequest header;
  const auto received = DecodeWithPayload(buffer, &header);
  REQUIRE(received.ok());
  CHECK(received->spans().empty());
  CHECK(DecodeWithPayload(Encode(PushRequest()), &header).ok());
}

TEST_CASE("A payload is found across slices and stays valid when the result moves") {
  PushRequest sent = Header();
  sent.set_payload(std::string(50, 'a') + std::string(50, 'b'));
  const std::string bytes = sent.SerializeAsString();
  std::vector<grpc::Slice> slices;  // short enough to lie in the slice objects themselves
  for (size_t at = 0; at < bytes.size(); at += 10) slices.emplace_back(bytes.substr(at, 10));
  const grpc::ByteBuffer buffer(slices.data(), slices.size());
  PushRequest header;
  auto received = DecodeWithPayload(buffer, &header);
  REQUIRE(received.ok());
  const ReceivedPayload moved = *std::move(received);
  CHECK(Join(moved.spans()) == sent.payload());
  CHECK(moved.bytes() == 100);
  CHECK(header.push_seq() == 9);
  CHECK(header.payload().empty());
}

TEST_CASE("What is no such message is refused by name") {
  const grpc::Slice slice(std::string("\x10"));
  const grpc::ByteBuffer buffer(&slice, 1);
  PushRequest header;
  CHECK(Decode(buffer, &header).message() == "not a lockstep.PushRequest (1 bytes)");
  CHECK(DecodeWithPayload(buffer, &header).status().code() == absl::StatusCode::kInvalidArgument);
  const grpc::Slice mistyped(std::string("\x0d\1\2\3\4"));  // worker as a fixed32: an unknown field
  CHECK(DecodeWithPayload(grpc::ByteBuffer(&mistyped, 1), &header).ok());
  CHECK_FALSE(DecodeWithPayload(grpc::ByteBuffer(), &header).ok());
}

}  // namespace
}  // namespace lockstep::wire
