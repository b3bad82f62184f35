// A folder of a test's own, gone with it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace lockstep::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* base = std::getenv("TEST_TMPDIR");
    if (!Make(base == nullptr ? "/tmp" : base)) std::abort();
  }
  // On a file system in memory, where there is one. There thousands of small files take a tenth of
  // the time.
  enum InMemory { kInMemory };
  explicit TemporaryFolder(InMemory) {
    if (!Make("/dev/shm") && !Make("/tmp")) std::abort();
  }
  // With a path of some 20 characters: that of a Unix socket has at most 107.
  enum ShortPath { kShortPath };
  explicit TemporaryFolder(ShortPath) {
    if (!Make("/tmp")) std::abort();
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

  // Writes a file below the folder, making folders as needed, and returns its path.
  std::string Write(const std::string& name, const std::string& contents) const {
    const std::string path = Path(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }

  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // What is behind the first `offset` bytes; empty where the file ends there or before.
  std::string ReadFrom(const std::string& name, size_t offset) const {
    std::ifstream file(Path(name), std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  bool Make(const std::string& base) {
    path_ = base;
    path_ += "/lockstep-XXXXXX";
    return ::mkdtemp(path_.data()) != nullptr;
  }

  std::string path_;
};

}  // namespace lockstep::test
