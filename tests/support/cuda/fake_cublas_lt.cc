#include "tests/support/cuda/fake_cublas_lt.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tests/support/cuda/fake_driver.h"
#include "tests/support/cuda/fake_elements.h"

namespace lockstep::worker::cuda {

// What the handles of the interface are here.
struct CublasLtContext {};
struct CublasLtPreference {
  uint32_t alignment = 256;  // the least that was promised for a matrix, in bytes
};
struct CublasLtMatmulDesc {
  int transpose_a = 0;
  int transpose_b = 0;
  int epilogue = kEpilogueDefault;
  const float* bias = nullptr;
};
struct CublasLtMatrixLayout {
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t leading = 0;
  int type = kFloat32;
};

}  // namespace lockstep::worker::cuda

namespace lockstep::test {

using namespace worker::cuda;  // the names of cuBLASLt's interface

namespace {

constexpr size_t kWorkspace = 128;

// What an algorithm may count on, in bytes. It stands in the CublasLtAlgorithm.
struct Alignments {
  uint32_t matrices;
  uint32_t bias;
};

std::atomic<int64_t> live_objects = 0;

template <typename T>
CublasStatus MakeObject(T** object, const T& value = {}) {
  ++live_objects;
  *object = new T(value);
  return kCublasSuccess;
}

template <typename T>
CublasStatus DestroyObject(T* object) {
  --live_objects;
  delete object;
  return kCublasSuccess;
}

FakeElements ElementsOf(const void* values, const CublasLtMatrixLayout& layout) {
  return {const_cast<void*>(values), layout.type == kBfloat16};
}

// op(X), column after column in memory.
struct Operand {
  Operand(const void* values, const CublasLtMatrixLayout& layout, int operation)
      : elements(ElementsOf(values, layout)),
        leading(static_cast<uint64_t>(layout.leading)),
        is_transposed(operation == kOperationTranspose),
        rows(is_transposed ? layout.columns : layout.rows),
        columns(is_transposed ? layout.rows : layout.columns) {}

  double At(uint64_t row, uint64_t column) const {
    return elements.At(
        static_cast<int64_t>(is_transposed ? column + row * leading : row + column * leading));
  }

  FakeElements elements;
  uint64_t leading;
  bool is_transposed;
  uint64_t rows;
  uint64_t columns;
};

void Multiply(const Operand& a, const Operand& b, const CublasLtMatmulDesc& matmul,
              const FakeElements& d) {
  const bool has_bias = (matmul.epilogue & kEpilogueBias) != 0;
  const bool has_relu = (matmul.epilogue & kEpilogueRelu) != 0;
  for (uint64_t column = 0; column < b.columns; ++column) {
    for (uint64_t row = 0; row < a.rows; ++row) {
      double sum = has_bias ? double{matmul.bias[row]} : 0;
      for (uint64_t i = 0; i < a.columns; ++i) sum += a.At(row, i) * b.At(i, column);
      d.Set(static_cast<int64_t>(row + column * a.rows), has_relu && sum < 0 ? 0 : sum);
    }
  }
}

CublasStatus SetMatmul(CublasLtMatmulDesc* matmul, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case kMatmulTransposeA:
      std::memcpy(&matmul->transpose_a, value, sizeof(int));
      return bytes == sizeof(int) ? kCublasSuccess : kCublasInvalidValue;
    case kMatmulTransposeB:
      std::memcpy(&matmul->transpose_b, value, sizeof(int));
      return bytes == sizeof(int) ? kCublasSuccess : kCublasInvalidValue;
    case kMatmulEpilogue:
      std::memcpy(&matmul->epilogue, value, sizeof(int));
      return bytes == sizeof(int) ? kCublasSuccess : kCublasInvalidValue;
    case kMatmulBias:
      std::memcpy(&matmul->bias, value, sizeof(matmul->bias));
      return bytes == sizeof(matmul->bias) ? kCublasSuccess : kCublasInvalidValue;
    default:
      return kCublasInvalidValue;
  }
}

CublasStatus SetPreference(CublasLtPreference* preference, int attribute, const void* value,
                           size_t bytes) {
  if (attribute == kPreferenceMostWorkspace) return kCublasSuccess;
  uint32_t alignment = 0;
  if (bytes != sizeof(alignment)) return kCublasInvalidValue;
  std::memcpy(&alignment, value, bytes);
  preference->alignment = std::min(preference->alignment, alignment);
  return kCublasSuccess;
}

bool IsAligned(const void* operand, uint32_t alignment) {
  return reinterpret_cast<uintptr_t>(operand) % alignment == 0;
}

// As cuBLASLt has it, the bias is as aligned as the pointer that is set when it is asked; null is
// aligned to anything.
uint32_t BiasAlignment(const CublasLtMatmulDesc& matmul) {
  const auto address = reinterpret_cast<uintptr_t>(matmul.bias);
  return address == 0 ? 256 : static_cast<uint32_t>(std::min<uintptr_t>(address & -address, 256));
}

CublasStatus GetHeuristic(CublasLtContext*, CublasLtMatmulDesc* matmul, CublasLtMatrixLayout*,
                          CublasLtMatrixLayout*, CublasLtMatrixLayout*, CublasLtMatrixLayout*,
                          CublasLtPreference* preference, int, CublasLtHeuristicResult* results,
                          int* count) {
  results[0] = {.workspace_bytes = kWorkspace, .state = kCublasSuccess};
  const Alignments alignments = {preference->alignment, BiasAlignment(*matmul)};
  std::memcpy(&results[0].algorithm, &alignments, sizeof(alignments));
  *count = 1;
  return kCublasSuccess;
}

CublasStatus RunMatmul(CublasLtContext*, CublasLtMatmulDesc* matmul, const void*, const void* a,
                       CublasLtMatrixLayout* a_layout, const void* b,
                       CublasLtMatrixLayout* b_layout, const void*, const void*,
                       CublasLtMatrixLayout*, void* d, CublasLtMatrixLayout* d_layout,
                       const CublasLtAlgorithm* algorithm, void* workspace, size_t workspace_bytes,
                       CUstream stream) {
  const Operand left(a, *a_layout, matmul->transpose_a);
  const Operand right(b, *b_layout, matmul->transpose_b);
  const bool fits = left.columns == right.rows && left.rows == d_layout->rows &&
                    right.columns == d_layout->columns &&
                    d_layout->leading == static_cast<int64_t>(d_layout->rows);
  const bool has_bias = (matmul->epilogue & kEpilogueBias) != 0;
  if (!fits || workspace == nullptr || workspace_bytes < kWorkspace) return kCublasInvalidValue;
  if (has_bias && matmul->bias == nullptr) return kCublasInvalidValue;
  // As cuBLASLt has it: factors of one type, a bias of the result's.
  if (a_layout->type != b_layout->type) return kCublasInvalidValue;
  if (has_bias && d_layout->type != kFloat32) return kCublasInvalidValue;
  Alignments alignments = {};
  std::memcpy(&alignments, algorithm, sizeof(alignments));
  for (const void* operand : {a, b, static_cast<const void*>(d)}) {
    if (!IsAligned(operand, alignments.matrices)) return kCublasInvalidValue;
  }
  if (has_bias && !IsAligned(matmul->bias, alignments.bias)) return kCublasInvalidValue;
  const bool enqueued = FakeDriver::Current().Enqueue(
      stream, [left, right, copy = *matmul, to = ElementsOf(d, *d_layout)] {
        Multiply(left, right, copy, to);
      });
  return enqueued ? kCublasSuccess : kCublasInvalidValue;
}

}  // namespace

const CublasLtLibrary& FakeCublasLt() {
  static const CublasLtLibrary library({
      .GetStatusName = [](CublasStatus) { return "CUBLAS_STATUS_FAKE"; },
      .Create =
          [](CublasLtContext** handle) {
            FakeDriver::Current().WaitForDevice();
            return MakeObject(handle);
          },
      .Destroy =
          [](CublasLtContext* handle) {
            FakeDriver::Current().WaitForDevice();
            return DestroyObject(handle);
          },
      .MatmulDescCreate = [](CublasLtMatmulDesc** matmul, int, int) { return MakeObject(matmul); },
      .MatmulDescDestroy = &DestroyObject<CublasLtMatmulDesc>,
      .MatmulDescSetAttribute = &SetMatmul,
      .MatrixLayoutCreate =
          [](CublasLtMatrixLayout** layout, int type, uint64_t rows, uint64_t columns,
             int64_t leading) {
            return MakeObject(layout, {rows, columns, leading, type});
          },
      .MatrixLayoutDestroy = &DestroyObject<CublasLtMatrixLayout>,
      .PreferenceCreate = [](CublasLtPreference** made) { return MakeObject(made); },
      .PreferenceDestroy = &DestroyObject<CublasLtPreference>,
      .PreferenceSetAttribute = &SetPreference,
      .AlgoGetHeuristic = &GetHeuristic,
      .Matmul = &RunMatmul,
  });
  return library;
}

int64_t LiveCublasLtObjects() { return live_objects; }

}  // namespace lockstep::test
