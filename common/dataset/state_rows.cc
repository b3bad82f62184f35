#include "common/dataset/state_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/byte_source.h"
#include "common/dataset/csv_reader.h"
#include "common/dataset/idx.h"
#include "common/dataset/memory_room.h"

namespace lockstep {
namespace {

std::string Field(absl::string_view name) {
  return absl::StrCat("data.state_inputs: \"", name, "\"");
}

// Of data.state_inputs: its number; their size() where none has the name.
int Find(const DataDef& data, absl::string_view name) {
  int number = 0;
  while (number < data.state_inputs_size() && data.state_inputs(number).name() != name) ++number;
  return number;
}

// An IDX file starts with two zero bytes; no text does.
absl::StatusOr<bool> StartsAsIdx(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, ByteSource::Open(path));
  std::array<std::byte, 2> start;
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t size, source->Read(absl::MakeSpan(start)));
  return size == start.size() && start[0] == std::byte{0} && start[1] == std::byte{0};
}

absl::StatusOr<Records> ReadCsvRows(const StateFile& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      CsvReader reader, CsvReader::Open(file.path, {.label_column = "", .header = file.header}));
  Records rows;
  rows.type = ElementType::kFloat32;
  rows.shape = Shape({static_cast<int64_t>(reader.num_features())});
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool found, reader.Next());
    if (!found) break;
    const size_t size = rows.bytes.size();
    const size_t needed = size + reader.features().size() * sizeof(float);
    if (needed > rows.bytes.capacity()) {
      const size_t capacity = std::max(needed, 2 * rows.bytes.capacity());
      LOCKSTEP_RETURN_IF_ERROR(CheckRoomForData(file.path, static_cast<int64_t>(capacity)));
      rows.bytes.reserve(capacity);
    }
    rows.bytes.resize(needed);
    std::memcpy(rows.bytes.data() + size, reader.features().data(), needed - size);
    ++rows.count;
  }
  if (rows.count > 0) return rows;
  return absl::DataLossError(absl::StrCat(
      file.path, ": expected a row for each sequence, got none. Remedy: write one on each line."));
}

absl::StatusOr<Records> ReadRows(const StateFile& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool idx, StartsAsIdx(file.path));
  return idx ? ReadIdx(file.path) : ReadCsvRows(file);
}

// The first of the files that has rows; size() where all are zeros.
size_t FirstRead(const std::vector<StateFile>& files) {
  return std::ranges::find_if(files, [](const StateFile& file) { return !file.path.empty(); }) -
         files.begin();
}

StateFile FileOf(const StateInputData& state, const std::string& path) {
  return {state.zeros() ? std::string() : path, !state.no_header()};
}

}  // namespace

absl::Status CheckStateInputs(const DataDef& data, const ExampleSpec& spec) {
  for (const ExampleSpec::StateRow& state : spec.state_inputs) {
    if (Find(data, state.name) < data.state_inputs_size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "data.state_inputs: expected \"", state.name, "\", which the model takes, got ",
        data.state_inputs_size(), " others. Remedy: give data { state_inputs { name: \"",
        state.name, "\" ... } }, with files or zeros: true."));
  }
  for (const StateInputData& state : data.state_inputs()) {
    const auto of_model =
        std::ranges::find(spec.state_inputs, state.name(), &ExampleSpec::StateRow::name);
    if (of_model != spec.state_inputs.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Field(state.name()),
                     ": the model has no state input of this name. Remedy: remove it, or add it to "
                     "the model's state_inputs."));
  }
  if (data.state_inputs_size() == static_cast<int>(spec.state_inputs.size())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("data.state_inputs: expected ", spec.state_inputs.size(),
                   ", one for each state input of the model, got ", data.state_inputs_size(),
                   ". Remedy: name each once."));
}

absl::StatusOr<std::vector<std::vector<StateFile>>> TrainStateFiles(const DataDef& data,
                                                                    size_t num_files) {
  std::vector<std::vector<StateFile>> files(num_files);
  for (const StateInputData& state : data.state_inputs()) {
    if (!state.zeros() && static_cast<size_t>(state.train_size()) != num_files) {
      return absl::InvalidArgumentError(absl::StrCat(
          Field(state.name()), ": train: expected ", num_files, num_files == 1 ? " file" : " files",
          ", one for each file of training examples, got ", state.train_size(),
          ". Remedy: name them in the same order, or write zeros: true."));
    }
    for (size_t i = 0; i < num_files; ++i) {
      files[i].push_back(FileOf(state, state.zeros() ? "" : state.train(static_cast<int>(i))));
    }
  }
  return files;
}

absl::StatusOr<std::vector<StateFile>> TestStateFiles(const DataDef& data) {
  std::vector<StateFile> files;
  for (const StateInputData& state : data.state_inputs()) {
    if (!state.zeros() && state.test().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Field(state.name()), ": test: not set, but there are test examples. Remedy: name the ",
          "file of their rows."));
    }
    files.push_back(FileOf(state, state.test()));
  }
  return files;
}

absl::StatusOr<std::vector<Records>> ReadStateRows(const std::vector<StateFile>& files) {
  std::vector<Records> states;
  const size_t first = FirstRead(files);
  for (const StateFile& file : files) {
    Records& state = states.emplace_back();
    if (file.path.empty()) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(state, ReadRows(file));
    if (state.count == states[first].count) continue;
    return absl::DataLossError(absl::StrCat(
        file.path, ": expected ", states[first].count, " rows, as many as ", files[first].path,
        " has, got ", state.count, ". Remedy: give each state input one row for each sequence."));
  }
  return states;
}

absl::StatusOr<int64_t> RowsPerSequence(const std::string& examples, int64_t rows,
                                        const std::vector<StateFile>& files,
                                        const std::vector<Records>& states) {
  const size_t first = FirstRead(files);
  if (first == files.size()) return 1;
  const int64_t sequences = states[first].count;
  if (rows >= sequences && rows % sequences == 0) return rows / sequences;
  return absl::DataLossError(absl::StrCat(
      files[first].path, ": has ", sequences, " rows, expected one for each sequence of ", examples,
      ", which has ", rows, " rows. Remedy: give it as many rows, or, where ", examples,
      " has a row for each time step, one for every so many of them."));
}

absl::StatusOr<Shape> ShapeOfRows(int64_t rows_per_sequence, const Shape& row) {
  if (rows_per_sequence == 1) return row;
  std::vector<int64_t> dims = {rows_per_sequence};
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  return Shape::Create(dims);
}

absl::StatusOr<std::vector<Tensor>> MakeStates(const DataDef& data,
                                               const std::vector<Records>& states,
                                               const ExampleSpec& spec) {
  std::vector<Tensor> made;
  for (const ExampleSpec::StateRow& row : spec.state_inputs) {
    Tensor& state = made.emplace_back();
    const int number = Find(data, row.name);
    if (data.state_inputs(number).zeros()) continue;
    const Records& records = states[number];
    if (records.shape != Shape({row.units})) {
      return absl::InvalidArgumentError(absl::StrCat(
          Field(row.name), ": expected rows of ", row.units,
          " numbers, the units of the model's state input, got the shape ",
          records.shape.ToString(), ". Remedy: name another file, or correct the model's units."));
    }
    state = Tensor(DType::kFloat32, Shape({records.count, row.units}));
    VisitElements(records, [&](auto all) {
      std::ranges::transform(all, state.as<float>().begin(),
                             [](auto value) { return static_cast<float>(value); });
    });
  }
  return made;
}

}  // namespace lockstep
