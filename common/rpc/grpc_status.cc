#include "common/rpc/grpc_status.h"

#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wrappers.pb.h>

#include <optional>
#include <string>

#include "common/base/exit_code.h"
#include "common/base/limits.h"
#include "common/base/printable.h"

namespace lockstep::rpc {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

// All headers together may have 8 KiB. Escaping can triple a message, and the details repeat it in
// base64: it is then cut here, and otherwise at kMaxErrorBytes.
constexpr size_t kMaxDetailedMessage = 1500;

// Fields of google.rpc.Status and google.protobuf.Any. Debian has no headers of the former.
constexpr int kStatusCode = 1;
constexpr int kStatusMessage = 2;
constexpr int kStatusDetails = 3;
constexpr int kAnyType = 1;
constexpr int kAnyValue = 2;
constexpr char kInt32Type[] = "type.googleapis.com/google.protobuf.Int32Value";

std::string EncodeDetails(const grpc::Status& status, ExitCode code) {
  google::protobuf::Int32Value number;
  number.set_value(static_cast<int>(code));
  UnknownFieldSet details;
  details.AddVarint(kStatusCode, status.error_code());
  details.AddLengthDelimited(kStatusMessage, status.error_message());
  UnknownFieldSet any;
  any.AddLengthDelimited(kAnyType, kInt32Type);
  any.AddLengthDelimited(kAnyValue, number.SerializeAsString());
  std::string encoded;
  any.SerializeToString(&encoded);
  details.AddLengthDelimited(kStatusDetails, encoded);
  details.SerializeToString(&encoded);
  return encoded;
}

// The bytes of the last such field; empty without one.
std::string BytesOf(const UnknownFieldSet& fields, int number) {
  std::string bytes;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() == number && field.type() == UnknownField::TYPE_LENGTH_DELIMITED)
      bytes = field.length_delimited();
  }
  return bytes;
}

// Nothing when there is none, or one that no Lockstep process ends with.
std::optional<ExitCode> DecodeDetails(const std::string& encoded) {
  UnknownFieldSet details;
  UnknownFieldSet any;
  google::protobuf::Int32Value number;
  if (encoded.empty() || !details.ParseFromString(encoded) ||
      !any.ParseFromString(BytesOf(details, kStatusDetails)) ||
      BytesOf(any, kAnyType) != kInt32Type || !number.ParseFromString(BytesOf(any, kAnyValue))) {
    return std::nullopt;
  }
  const ExitCode code = static_cast<ExitCode>(number.value());
  switch (code) {
    case ExitCode::kUsage:
    case ExitCode::kCorruptInput:
    case ExitCode::kInputNotFound:
    case ExitCode::kBug:
    case ExitCode::kCannotCreate:
    case ExitCode::kIoError:
    case ExitCode::kNotPermitted:
    case ExitCode::kBadConfiguration:
    case ExitCode::kDiverged:
    case ExitCode::kFenced:
    case ExitCode::kInterrupted:
    case ExitCode::kPeersLost:
    case ExitCode::kTerminated:
    case ExitCode::kDeviceFailed:
      return code;
    case ExitCode::kDone:
      break;
  }
  return std::nullopt;
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  const absl::Status converted(static_cast<absl::StatusCode>(status.error_code()),
                               Printable(status.error_message(), limits::kMaxErrorBytes));
  const std::optional<ExitCode> code = DecodeDetails(status.error_details());
  return converted.ok() || !code.has_value() ? converted : WithExitCode(converted, *code);
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.raw_code());
  const ExitCode exit_code = ExitCodeFor(status);
  // The receiver derives it from the code alone.
  if (exit_code == ExitCodeFor(absl::Status(status.code(), "")))
    return grpc::Status(code, std::string(status.message().substr(0, limits::kMaxErrorBytes)));
  const grpc::Status cut(code, std::string(status.message().substr(0, kMaxDetailedMessage)));
  return grpc::Status(code, cut.error_message(), EncodeDetails(cut, exit_code));
}

}  // namespace lockstep::rpc
