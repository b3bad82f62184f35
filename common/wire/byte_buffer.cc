#include "common/wire/byte_buffer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::wire {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Below this, copying is cheaper than a slice with its reference count and its own entry in writev.
constexpr size_t kShortSpan = 2048;

using Owner = std::shared_ptr<const void>;

grpc::Slice TakeSlice(std::string* bytes) {
  grpc::Slice slice(*bytes);
  bytes->clear();
  return slice;
}

absl::Status Parse(absl::string_view bytes, google::protobuf::MessageLite* message) {
  if (message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("not a ", message->GetTypeName(), " (", bytes.size(), " bytes)"));
}

absl::StatusOr<std::vector<grpc::Slice>> Slices(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok())
    return absl::InvalidArgumentError("message cannot be read: not decompressible");
  return slices;
}

Bytes BytesOf(const grpc::Slice& slice) {
  return {reinterpret_cast<const std::byte*>(slice.begin()), slice.size()};
}

CodedInputStream InputOf(absl::string_view message) {
  return CodedInputStream(reinterpret_cast<const uint8_t*>(message.data()),
                          static_cast<int>(message.size()));
}

bool IsMessage(uint32_t tag, int field) {
  return WireFormatLite::GetTagFieldNumber(tag) == field &&
         WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
}

// The bytes of the field whose tag `input`, of `message`, has just read. nullopt: malformed.
std::optional<absl::string_view> ReadBytes(absl::string_view message, CodedInputStream* input) {
  int size = 0;
  if (!input->ReadVarintSizeAsInt(&size)) return std::nullopt;
  const auto begin = static_cast<size_t>(input->CurrentPosition());
  if (!input->Skip(size)) return std::nullopt;
  return message.substr(begin, static_cast<size_t>(size));
}

}  // namespace

grpc::Slice Share(Bytes bytes, std::shared_ptr<const void> owner) {
  return grpc::Slice(
      const_cast<std::byte*>(bytes.data()), bytes.size(),
      [](void* held) { delete static_cast<Owner*>(held); }, new Owner(std::move(owner)));
}

grpc::ByteBuffer Encode(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer Encode(const google::protobuf::MessageLite& header, std::span<const Bytes> payload,
                        const std::shared_ptr<const void>& owner) {
  uint64_t size = 0;
  for (const Bytes& span : payload) size += span.size();
  std::string copied = header.SerializeAsString();
  if (size > 0) copied += PayloadPrefix(size);
  std::vector<grpc::Slice> slices;
  for (const Bytes& span : payload) {
    if (span.size() < kShortSpan) {
      copied.append(reinterpret_cast<const char*>(span.data()), span.size());
      continue;
    }
    if (!copied.empty()) slices.push_back(TakeSlice(&copied));
    slices.push_back(Share(span, owner));
  }
  if (!copied.empty() || slices.empty()) slices.push_back(TakeSlice(&copied));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::Status Decode(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message,
                    CheckBeforeParsing check) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<grpc::Slice> slices, Slices(buffer));
  std::string bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  LOCKSTEP_RETURN_IF_ERROR(check(bytes));
  return Parse(bytes, message);
}

std::optional<absl::string_view> FindField(absl::string_view message, int field) {
  CodedInputStream input = InputOf(message);
  while (const uint32_t tag = input.ReadTag()) {
    if (IsMessage(tag, field)) return ReadBytes(message, &input);
    if (!WireFormatLite::SkipField(&input, tag)) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<size_t> CountFields(absl::string_view message, std::span<const int> path) {
  CodedInputStream input = InputOf(message);
  const bool is_end = path.size() == 1;
  size_t count = 0;
  while (const uint32_t tag = input.ReadTag()) {
    if (is_end || !IsMessage(tag, path.front())) {
      if (is_end && WireFormatLite::GetTagFieldNumber(tag) == path.front()) ++count;
      if (!WireFormatLite::SkipField(&input, tag)) return std::nullopt;
      continue;
    }
    const std::optional<absl::string_view> inner = ReadBytes(message, &input);
    if (!inner.has_value()) return std::nullopt;
    const std::optional<size_t> there = CountFields(*inner, path.subspan(1));
    if (!there.has_value()) return std::nullopt;
    count += *there;
  }
  if (!input.ConsumedEntireMessage()) return std::nullopt;
  return count;
}

absl::StatusOr<ReceivedPayload> DecodeWithPayload(const grpc::ByteBuffer& buffer,
                                                  google::protobuf::MessageLite* header,
                                                  CheckBeforeParsing check) {
  ReceivedPayload received;
  LOCKSTEP_ASSIGN_OR_RETURN(received.slices_, Slices(buffer));
  std::vector<Bytes> pieces;
  pieces.reserve(received.slices_.size());
  for (const grpc::Slice& slice : received.slices_) pieces.push_back(BytesOf(slice));
  LOCKSTEP_ASSIGN_OR_RETURN(SplitMessage split, Split(pieces));
  LOCKSTEP_RETURN_IF_ERROR(check(split.header));
  LOCKSTEP_RETURN_IF_ERROR(Parse(split.header, header));
  received.spans_ = std::move(split.payload);
  received.bytes_ = split.payload_bytes;
  return received;
}

}  // namespace lockstep::wire
