#include "common/dataset/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;
constexpr std::byte kGzipMagic[] = {std::byte{0x1f}, std::byte{0x8b}};
constexpr int kGzipWindowBits = 15 + 16;
// inflate counts in 32 bits.
constexpr size_t kLargestInflate = size_t{1} << 30;

// How far a gzip file may expand: deflate reaches 1,032 for each byte that is stored, data of one
// value in a hundred about 100. Below the floor it costs nobody anything.
constexpr int64_t kMaxExpansion = 500;
constexpr int64_t kFreeExpansion = int64_t{1} << 28;

absl::Status WithRemedy(const absl::Status& error) {
  return WithMessage(
      error,
      absl::StrCat(error.message(),
                   ". Remedy: correct the path in the job file (a relative path starts at the job "
                   "file's folder), or let this user read the file."));
}

}  // namespace

void ByteSource::EndInflate::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

ByteSource::ByteSource(InputFile file) : file_(std::move(file)), buffer_(kReadBytes) {}

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::Open(const std::string& path) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return WithRemedy(file.status());
  std::unique_ptr<ByteSource> source(new ByteSource(*std::move(file)));
  LOCKSTEP_RETURN_IF_ERROR(source->DetectGzip());
  return source;
}

absl::Status ByteSource::DetectGzip() {
  LOCKSTEP_RETURN_IF_ERROR(FillBuffer());
  if (end_ < std::size(kGzipMagic)) return absl::OkStatus();
  if (!std::equal(std::begin(kGzipMagic), std::end(kGzipMagic), buffer_.begin())) {
    return absl::OkStatus();
  }
  auto stream = std::make_unique<z_stream>();
  LOCKSTEP_CHECK(inflateInit2(stream.get(), kGzipWindowBits) == Z_OK);
  inflate_.reset(stream.release());
  return absl::OkStatus();
}

int64_t ByteSource::max_size() const {
  if (!compressed()) return stored_size();
  const auto most = CheckedMultiply(stored_size(), kMaxExpansion);
  return std::max(kFreeExpansion, most.value_or(std::numeric_limits<int64_t>::max()));
}

absl::StatusOr<size_t> ByteSource::Read(absl::Span<std::byte> out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t got, compressed() ? ReadGzip(out) : ReadPlain(out));
  offset_ += static_cast<int64_t>(got);
  return got;
}

absl::StatusOr<size_t> ByteSource::ReadFile(std::byte* out, size_t size) {
  const size_t piece = std::min<uint64_t>(size, stored_size() - file_offset_);
  const absl::Status read = file_.ReadAt(file_offset_, std::span(out, piece));
  if (!read.ok()) return WithRemedy(read);
  file_offset_ += static_cast<int64_t>(piece);
  return piece;
}

absl::Status ByteSource::FillBuffer() {
  begin_ = 0;
  end_ = 0;
  LOCKSTEP_ASSIGN_OR_RETURN(end_, ReadFile(buffer_.data(), buffer_.size()));
  return absl::OkStatus();
}

absl::Span<const std::byte> ByteSource::buffered() const {
  return absl::MakeConstSpan(buffer_).subspan(begin_, end_ - begin_);
}

absl::StatusOr<size_t> ByteSource::ReadPlain(absl::Span<std::byte> out) {
  size_t filled = std::min(out.size(), buffered().size());
  std::copy_n(buffered().begin(), filled, out.begin());
  begin_ += filled;
  while (filled < out.size()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t got, ReadFile(out.data() + filled, out.size() - filled));
    if (got == 0) break;
    filled += got;
  }
  return filled;
}

absl::StatusOr<size_t> ByteSource::ReadGzip(absl::Span<std::byte> out) {
  size_t filled = 0;
  while (filled < out.size()) {
    if (between_members_) {
      LOCKSTEP_ASSIGN_OR_RETURN(const bool another, NextMember());
      if (!another) break;
    }
    if (buffered().empty()) LOCKSTEP_RETURN_IF_ERROR(FillBuffer());
    if (buffered().empty()) return BrokenGzip("the file ends in the middle of its gzip stream");
    const size_t space = std::min(out.size() - filled, kLargestInflate);
    inflate_->next_in = reinterpret_cast<Bytef*>(buffer_.data() + begin_);
    inflate_->avail_in = static_cast<uInt>(end_ - begin_);
    inflate_->next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    inflate_->avail_out = static_cast<uInt>(space);
    const int result = inflate(inflate_.get(), Z_NO_FLUSH);
    begin_ = end_ - inflate_->avail_in;
    filled += space - inflate_->avail_out;
    if (static_cast<int64_t>(filled) > max_size() - offset_) return ExpandsTooFar();
    if (result == Z_STREAM_END) {
      between_members_ = true;
    } else if (result != Z_OK) {
      return BrokenGzip(inflate_->msg != nullptr ? inflate_->msg : "broken gzip stream");
    }
  }
  return filled;
}

absl::StatusOr<bool> ByteSource::NextMember() {
  if (buffered().empty()) LOCKSTEP_RETURN_IF_ERROR(FillBuffer());
  if (buffered().empty()) return false;
  if (buffered()[0] != kGzipMagic[0]) return BrokenGzip("bytes behind the end of the gzip stream");
  LOCKSTEP_CHECK(inflateReset(inflate_.get()) == Z_OK);
  between_members_ = false;
  return true;
}

absl::Status ByteSource::BrokenGzip(const char* what) const {
  const int64_t at = file_offset_ - static_cast<int64_t>(end_ - begin_);
  return absl::DataLossError(absl::StrCat(path(), ": byte ", at, " of the compressed file: ", what,
                                          ". Remedy: get the file again; gzip -t checks it."));
}

absl::Status ByteSource::ExpandsTooFar() const {
  return absl::DataLossError(absl::StrCat(
      path(), ": byte ", max_size(), " of the uncompressed data: expected no more from ",
      stored_size(), " compressed bytes (", kMaxExpansion,
      " times), got more. Remedy: decompress the file if it is sound (gunzip), and name"
      " what comes out."));
}

}  // namespace lockstep
