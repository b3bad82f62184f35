// The kernels of worker/ops/cuda, compiled for the host.
#include "tests/support/cuda/emulated_kernel.h"
#include "tests/support/cuda/emulation.h"
//
#include "worker/ops/cuda/activation.cu"
#include "worker/ops/cuda/add.cu"
#include "worker/ops/cuda/batch_norm.cu"
#include "worker/ops/cuda/bias.cu"
#include "worker/ops/cuda/cast.cu"
#include "worker/ops/cuda/clipping.cu"
#include "worker/ops/cuda/column_sums.cu"
#include "worker/ops/cuda/columns.cu"
#include "worker/ops/cuda/dropout.cu"
#include "worker/ops/cuda/embedding.cu"
#include "worker/ops/cuda/fill.cu"
#include "worker/ops/cuda/loss.cu"
#include "worker/ops/cuda/mean.cu"
#include "worker/ops/cuda/moving_average.cu"
#include "worker/ops/cuda/noise.cu"
#include "worker/ops/cuda/pool.cu"
#include "worker/ops/cuda/recurrent.cu"
#include "worker/ops/cuda/swap_outer.cu"

namespace lockstep::test {
namespace {

#define LOCKSTEP_EMULATE(kernel) \
  const RegisterEmulatedKernel register_##kernel(#kernel, {.bind = Binder(&kernel)})
#define LOCKSTEP_EMULATE_BLOCKS(kernel)                   \
  const RegisterEmulatedKernel register_##kernel(#kernel, \
                                                 {.bind = Binder(&kernel), .has_barriers = true})

LOCKSTEP_EMULATE(lockstep_relu);
LOCKSTEP_EMULATE(lockstep_relu_bf16);
LOCKSTEP_EMULATE(lockstep_tanh);
LOCKSTEP_EMULATE(lockstep_tanh_bf16);
LOCKSTEP_EMULATE(lockstep_sigmoid);
LOCKSTEP_EMULATE(lockstep_sigmoid_bf16);
LOCKSTEP_EMULATE(lockstep_relu_gradient);
LOCKSTEP_EMULATE(lockstep_relu_gradient_bf16);
LOCKSTEP_EMULATE(lockstep_tanh_gradient);
LOCKSTEP_EMULATE(lockstep_tanh_gradient_bf16);
LOCKSTEP_EMULATE(lockstep_sigmoid_gradient);
LOCKSTEP_EMULATE(lockstep_sigmoid_gradient_bf16);
LOCKSTEP_EMULATE(lockstep_add);
LOCKSTEP_EMULATE(lockstep_add_bf16);
LOCKSTEP_EMULATE(lockstep_column_parts);
LOCKSTEP_EMULATE(lockstep_column_parts_bf16);
LOCKSTEP_EMULATE_BLOCKS(lockstep_sum_column_parts);
LOCKSTEP_EMULATE(lockstep_copy_columns);
LOCKSTEP_EMULATE(lockstep_copy_columns_bf16);
LOCKSTEP_EMULATE(lockstep_columns_gradient);
LOCKSTEP_EMULATE(lockstep_dropout);
LOCKSTEP_EMULATE(lockstep_dropout_bf16);
LOCKSTEP_EMULATE(lockstep_dropout_gradient);
LOCKSTEP_EMULATE(lockstep_dropout_gradient_bf16);
LOCKSTEP_EMULATE(lockstep_scale);
LOCKSTEP_EMULATE(lockstep_swap_outer);
LOCKSTEP_EMULATE(lockstep_swap_outer_to_bf16);
LOCKSTEP_EMULATE(lockstep_swap_outer_from_bf16);
LOCKSTEP_EMULATE(lockstep_to_bf16);
LOCKSTEP_EMULATE(lockstep_from_bf16);
LOCKSTEP_EMULATE(lockstep_add_rows);
LOCKSTEP_EMULATE(lockstep_lstm);
LOCKSTEP_EMULATE(lockstep_lstm_gradient);
LOCKSTEP_EMULATE(lockstep_gru);
LOCKSTEP_EMULATE(lockstep_gru_gradient);
LOCKSTEP_EMULATE(lockstep_find_rows);
LOCKSTEP_EMULATE(lockstep_embedding);
LOCKSTEP_EMULATE_BLOCKS(lockstep_embedding_gradient);
LOCKSTEP_EMULATE(lockstep_bias);
LOCKSTEP_EMULATE(lockstep_bias_bf16);
LOCKSTEP_EMULATE(lockstep_fill);
LOCKSTEP_EMULATE(lockstep_moment_parts);
LOCKSTEP_EMULATE(lockstep_moment_parts_bf16);
LOCKSTEP_EMULATE_BLOCKS(lockstep_moments);
LOCKSTEP_EMULATE(lockstep_batch_norm);
LOCKSTEP_EMULATE(lockstep_batch_norm_bf16);
LOCKSTEP_EMULATE(lockstep_batch_norm_gradient_parts);
LOCKSTEP_EMULATE(lockstep_batch_norm_gradient_parts_bf16);
LOCKSTEP_EMULATE(lockstep_batch_norm_gradient);
LOCKSTEP_EMULATE(lockstep_batch_norm_gradient_bf16);
LOCKSTEP_EMULATE(lockstep_frozen_batch_norm_gradient);
LOCKSTEP_EMULATE(lockstep_frozen_batch_norm_gradient_bf16);
LOCKSTEP_EMULATE(lockstep_follow);
LOCKSTEP_EMULATE(lockstep_moving_average);
LOCKSTEP_EMULATE(lockstep_clip_value);
LOCKSTEP_EMULATE(lockstep_norm_divisor);
LOCKSTEP_EMULATE(lockstep_global_norm_scale);
LOCKSTEP_EMULATE(lockstep_clip_norm);
LOCKSTEP_EMULATE(lockstep_clip_global_norm);
LOCKSTEP_EMULATE_BLOCKS(lockstep_square_parts);
LOCKSTEP_EMULATE_BLOCKS(lockstep_sum_parts);
LOCKSTEP_EMULATE(lockstep_noise);
LOCKSTEP_EMULATE(lockstep_max_pool);
LOCKSTEP_EMULATE(lockstep_max_pool_bf16);
LOCKSTEP_EMULATE(lockstep_max_pool_gradient);
LOCKSTEP_EMULATE(lockstep_max_pool_gradient_bf16);
LOCKSTEP_EMULATE(lockstep_average_pool);
LOCKSTEP_EMULATE(lockstep_average_pool_bf16);
LOCKSTEP_EMULATE(lockstep_average_pool_gradient);
LOCKSTEP_EMULATE(lockstep_average_pool_gradient_bf16);
LOCKSTEP_EMULATE(lockstep_sigmoid_of_logits);
LOCKSTEP_EMULATE_BLOCKS(lockstep_softmax_cross_entropy);
LOCKSTEP_EMULATE_BLOCKS(lockstep_softmax);
LOCKSTEP_EMULATE_BLOCKS(lockstep_l2);
LOCKSTEP_EMULATE_BLOCKS(lockstep_sigmoid_cross_entropy);
LOCKSTEP_EMULATE_BLOCKS(lockstep_sum_losses);

}  // namespace
}  // namespace lockstep::test
