#include "common/dataset/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/fs/fs_error.h"

namespace lockstep {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;
constexpr std::byte kGzipMagic[] = {std::byte{0x1f}, std::byte{0x8b}};
constexpr int kGzipWindowBits = 15 + 16;
// inflate counts in 32 bits.
constexpr size_t kLargestInflate = size_t{1} << 30;

absl::Status CannotRead(const std::string& path, absl::string_view action) {
  const absl::Status error = ReadError(path, action, errno);
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

ByteSource::ByteSource(std::string path, FileDescriptor file)
    : path_(std::move(path)), file_(std::move(file)), buffer_(kReadBytes) {}

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::Open(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return CannotRead(path, "open");
  std::unique_ptr<ByteSource> source(new ByteSource(path, std::move(file)));
  LOCKSTEP_RETURN_IF_ERROR(source->DetectGzip());
  return source;
}

absl::Status ByteSource::DetectGzip() {
  // A pipe may deliver less than the magic number at once.
  while (end_ < std::size(kGzipMagic)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t got,
                              ReadFile(buffer_.data() + end_, buffer_.size() - end_));
    if (got == 0) return absl::OkStatus();
    end_ += got;
  }
  if (!std::equal(std::begin(kGzipMagic), std::end(kGzipMagic), buffer_.begin())) {
    return absl::OkStatus();
  }
  auto stream = std::make_unique<z_stream>();
  LOCKSTEP_CHECK(inflateInit2(stream.get(), kGzipWindowBits) == Z_OK);
  inflate_.reset(stream.release());
  return absl::OkStatus();
}

std::optional<int64_t> ByteSource::size() const {
  struct stat info;
  if (compressed() || ::fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  return info.st_size;
}

absl::StatusOr<size_t> ByteSource::Read(absl::Span<std::byte> out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t got, compressed() ? ReadGzip(out) : ReadPlain(out));
  offset_ += static_cast<int64_t>(got);
  return got;
}

absl::StatusOr<size_t> ByteSource::ReadFile(std::byte* out, size_t size) {
  while (true) {
    const ssize_t got = ::read(file_.get(), out, size);
    if (got >= 0) {
      file_offset_ += got;
      return static_cast<size_t>(got);
    }
    if (errno != EINTR) return CannotRead(path_, "read");
  }
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
  return absl::DataLossError(absl::StrCat(path_, ": byte ", at, " of the compressed file: ", what,
                                          ". Remedy: get the file again; gzip -t checks it."));
}

}  // namespace lockstep
