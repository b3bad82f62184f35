// The part of cuDNN 9's graph interface that is used, as cudnn.h has it. It is declared here, so
// that a build needs no cuDNN and a program starts without one. cudnn_header_test compares it with
// cudnn.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/device/cuda/driver_api.h"

namespace lockstep::worker::cuda {

struct CudnnContext;
using CudnnStatus = int;
using CudnnDescriptor = void*;

inline constexpr CudnnStatus kCudnnSuccess = 0;
// The first of those that say what cuDNN cannot do; the last one is kCudnnNotSupported + 999.
inline constexpr CudnnStatus kCudnnNotSupported = 3000;
inline constexpr CudnnStatus kCudnnCompilationFailed = 4001;  // of an engine's own kernel

// CONSTANT(name, name in cudnn.h, value) for each.
#define LOCKSTEP_CUDNN_CONSTANTS(CONSTANT)                                                         \
  /* Types of descriptors. */                                                                      \
  CONSTANT(kConvolutionDescriptor, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                        \
  CONSTANT(kEngineDescriptor, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                  \
  CONSTANT(kEngineConfigDescriptor, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                         \
  CONSTANT(kHeuristicsDescriptor, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                          \
  CONSTANT(kExecutionPlanDescriptor, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                   \
  CONSTANT(kForwardDescriptor, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)         \
  CONSTANT(kBackwardFilterDescriptor,                                                              \
           CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11)                     \
  CONSTANT(kBackwardDataDescriptor, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,  \
           12)                                                                                     \
  CONSTANT(kOperationGraphDescriptor, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                 \
  CONSTANT(kVariantPackDescriptor, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                      \
  CONSTANT(kTensorDescriptor, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                 \
  CONSTANT(kDevicePropertiesDescriptor, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, 38)                   \
  /* Types of attributes. */                                                                       \
  CONSTANT(kTypeHandle, CUDNN_TYPE_HANDLE, 0)                                                      \
  CONSTANT(kTypeDataType, CUDNN_TYPE_DATA_TYPE, 1)                                                 \
  CONSTANT(kTypeInt64, CUDNN_TYPE_INT64, 3)                                                        \
  CONSTANT(kTypeFloat, CUDNN_TYPE_FLOAT, 4)                                                        \
  CONSTANT(kTypePointer, CUDNN_TYPE_VOID_PTR, 6)                                                   \
  CONSTANT(kTypeConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE, 7)                                   \
  CONSTANT(kTypeHeuristicMode, CUDNN_TYPE_HEUR_MODE, 8)                                            \
  CONSTANT(kTypeNumericalNote, CUDNN_TYPE_NUMERICAL_NOTE, 11)                                      \
  CONSTANT(kTypeDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                     \
  CONSTANT(kTypeChar, CUDNN_TYPE_CHAR, 24)                                                         \
  /* Attributes. */                                                                                \
  CONSTANT(kConvolutionComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                         \
  CONSTANT(kConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                                \
  CONSTANT(kConvolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                           \
  CONSTANT(kConvolutionStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                        \
  CONSTANT(kConvolutionPaddingAfter, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)                    \
  CONSTANT(kConvolutionPaddingBefore, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)                    \
  CONSTANT(kConvolutionDimensions, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                       \
  CONSTANT(kHeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                       \
  CONSTANT(kHeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                           \
  CONSTANT(kHeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                 \
  CONSTANT(kHeuristicsDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 204)                               \
  CONSTANT(kEngineConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                  \
  CONSTANT(kPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                                     \
  CONSTANT(kPlanEngineConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                        \
  CONSTANT(kPlanWorkspaceSize, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                      \
  CONSTANT(kPlanDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 407)                                 \
  CONSTANT(kForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)                     \
  CONSTANT(kForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)                       \
  CONSTANT(kForwardConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)           \
  CONSTANT(kForwardFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)                        \
  CONSTANT(kForwardInput, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)                         \
  CONSTANT(kForwardOutput, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)                        \
  CONSTANT(kBackwardDataAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706)               \
  CONSTANT(kBackwardDataBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707)                 \
  CONSTANT(kBackwardDataConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708)     \
  CONSTANT(kBackwardDataFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709)                  \
  CONSTANT(kBackwardDataInput, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710)                  \
  CONSTANT(kBackwardDataOutput, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711)                 \
  CONSTANT(kBackwardFilterAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)           \
  CONSTANT(kBackwardFilterBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)             \
  CONSTANT(kBackwardFilterConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714) \
  CONSTANT(kBackwardFilterFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715)             \
  CONSTANT(kBackwardFilterInput, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716)               \
  CONSTANT(kBackwardFilterOutput, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)             \
  CONSTANT(kOperationGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                           \
  CONSTANT(kOperationGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                          \
  CONSTANT(kTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                                \
  CONSTANT(kTensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                      \
  CONSTANT(kTensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                   \
  CONSTANT(kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES, 903)                                         \
  CONSTANT(kTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                            \
  CONSTANT(kVariantPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                              \
  CONSTANT(kVariantPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                      \
  CONSTANT(kVariantPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                         \
  CONSTANT(kEngineGlobalIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301)                               \
  CONSTANT(kEngineNumericalNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)                          \
  CONSTANT(kDevicePropertiesJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702)                 \
  /* Values. */                                                                                    \
  CONSTANT(kDataFloat, CUDNN_DATA_FLOAT, 0)                                                        \
  CONSTANT(kDataBfloat16, CUDNN_DATA_BFLOAT16, 9)                                                  \
  CONSTANT(kCrossCorrelation, CUDNN_CROSS_CORRELATION, 1)                                          \
  CONSTANT(kHeuristicModeFallback, CUDNN_HEUR_MODE_FALLBACK, 2)                                    \
  CONSTANT(kHeuristicModeA, CUDNN_HEUR_MODE_A, 3)                                                  \
  CONSTANT(kNoteTensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0)                                   \
  CONSTANT(kNoteDownConvertInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)                    \
  CONSTANT(kNoteReducedPrecisionReduction, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2)    \
  CONSTANT(kNoteNondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4)

#define LOCKSTEP_DECLARE_CONSTANT(name, symbol, value) inline constexpr int name = value;
LOCKSTEP_CUDNN_CONSTANTS(LOCKSTEP_DECLARE_CONSTANT)
#undef LOCKSTEP_DECLARE_CONSTANT

// FUNCTION(name, result, symbol of libcudnn.so, parameters) for each.
#define LOCKSTEP_CUDNN_FUNCTIONS(FUNCTION)                                                      \
  FUNCTION(GetErrorString, const char*, cudnnGetErrorString, (CudnnStatus status))              \
  FUNCTION(GetLastErrorString, void, cudnnGetLastErrorString, (char* text, size_t size))        \
  FUNCTION(GetVersion, size_t, cudnnGetVersion, ())                                             \
  FUNCTION(Create, CudnnStatus, cudnnCreate, (CudnnContext * *handle))                          \
  FUNCTION(Destroy, CudnnStatus, cudnnDestroy, (CudnnContext * handle))                         \
  FUNCTION(SetStream, CudnnStatus, cudnnSetStream, (CudnnContext * handle, CUstream stream))    \
  FUNCTION(Execute, CudnnStatus, cudnnBackendExecute,                                           \
           (CudnnContext * handle, CudnnDescriptor plan, CudnnDescriptor variant_pack))         \
  FUNCTION(CreateDescriptor, CudnnStatus, cudnnBackendCreateDescriptor,                         \
           (int type, CudnnDescriptor* descriptor))                                             \
  FUNCTION(DestroyDescriptor, CudnnStatus, cudnnBackendDestroyDescriptor,                       \
           (CudnnDescriptor descriptor))                                                        \
  FUNCTION(Finalize, CudnnStatus, cudnnBackendFinalize, (CudnnDescriptor descriptor))           \
  FUNCTION(SetAttribute, CudnnStatus, cudnnBackendSetAttribute,                                 \
           (CudnnDescriptor descriptor, int name, int type, int64_t count, const void* values)) \
  FUNCTION(GetAttribute, CudnnStatus, cudnnBackendGetAttribute,                                 \
           (CudnnDescriptor descriptor, int name, int type, int64_t room, int64_t* count,       \
            void* values))

struct CudnnFunctions {
#define LOCKSTEP_DECLARE_FUNCTION(name, result, symbol, parameters) \
  result(*name) parameters = nullptr;
  LOCKSTEP_CUDNN_FUNCTIONS(LOCKSTEP_DECLARE_FUNCTION)
#undef LOCKSTEP_DECLARE_FUNCTION
};

}  // namespace lockstep::worker::cuda
