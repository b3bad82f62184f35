"""The optimizers that scripts are recorded of, with random hyper-parameters."""
from .draw import chance, uniform
from .tf1 import tf


class _DecayingAdam(tf.train.AdamOptimizer):
    """AdamW behind an accumulator, by our own formula, because TensorFlow's version 1 lacks it: every weight decays by
    weight_decay times the rate, computed in the weight's type, then Adam. record_adamw.py asks Keras for its own."""

    def __init__(self, rate, weight_decay, **hyper_parameters):
        super().__init__(rate, **hyper_parameters)
        self._decay = (weight_decay, rate)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        grads_and_vars = list(grads_and_vars)
        decays = [self._decayed(v) for _, v in grads_and_vars]
        with tf.control_dependencies(decays):
            return super().apply_gradients(grads_and_vars, global_step, name)

    def _decayed(self, variable):
        weight_decay, rate = (tf.cast(number, variable.dtype.base_dtype) for number in self._decay)
        return tf.assign_sub(variable, variable * weight_decay * rate)


class _LazyAdam(tf.train.AdamOptimizer):
    """Our own formula, in TensorFlow's ops: no system that we know has it. Adam of the rows that a sparse gradient names; m and v of the others stay."""

    def _apply_sparse_shared(self, grad, var, indices, scatter_add):
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        powers = [tf.cast(power, var.dtype.base_dtype) for power in self._get_beta_accumulators()]
        rate, beta1, beta2, epsilon = (
            tf.cast(number, var.dtype.base_dtype)
            for number in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        alpha = rate * tf.sqrt(1 - powers[1]) / (1 - powers[0])
        m_rows = beta1 * tf.gather(m, indices) + (1 - beta1) * grad
        v_rows = beta2 * tf.gather(v, indices) + (1 - beta2) * tf.square(grad)
        return tf.group(
            tf.scatter_update(m, indices, m_rows),
            tf.scatter_update(v, indices, v_rows),
            scatter_add(var, indices, -alpha * m_rows / (tf.sqrt(v_rows) + epsilon)),
        )


def _nesterov(rate, **hyper_parameters):
    return tf.train.MomentumOptimizer(rate, use_nesterov=True, **hyper_parameters)


def _centered(rate, **hyper_parameters):
    return tf.train.RMSPropOptimizer(rate, centered=True, **hyper_parameters)


MAKE = {
    "sgd": tf.train.GradientDescentOptimizer,
    "momentum": tf.train.MomentumOptimizer,
    "nesterov": _nesterov,
    "adagrad": tf.train.AdagradOptimizer,
    "adadelta": tf.train.AdadeltaOptimizer,
    "rmsprop": tf.train.RMSPropOptimizer,
    "rmsprop_centered": _centered,
    "adam": tf.train.AdamOptimizer,
    "adamw": _DecayingAdam,
    "lazy_adam": _LazyAdam,
    "ftrl": tf.train.FtrlOptimizer,
}


def hyper_parameters(rng, name):
    if name in ("momentum", "nesterov"):
        return {"momentum": uniform(rng, 0.5, 0.99)}
    if name == "adagrad":
        return {"initial_accumulator_value": uniform(rng, 0.01, 1)}
    if name == "adadelta":
        return {"rho": uniform(rng, 0.5, 0.99), "epsilon": uniform(rng, 1e-8, 1e-3)}
    if name in ("rmsprop", "rmsprop_centered"):
        return {
            "decay": uniform(rng, 0.5, 0.99),
            "momentum": uniform(rng, 0, 0.9),
            "epsilon": uniform(rng, 1e-10, 1e-3),
        }
    if name in ("adam", "adamw", "lazy_adam"):
        return {
            "beta1": uniform(rng, 0.5, 0.95),
            "beta2": uniform(rng, 0.9, 0.9999),
            "epsilon": uniform(rng, 1e-8, 1e-3),
            **({"weight_decay": uniform(rng, 0.01, 0.5)} if name == "adamw" else {}),
        }
    if name == "ftrl":
        return {
            "learning_rate_power": float(rng.choice([-0.5, -0.5, -0.7, -0.3])),
            "initial_accumulator_value": uniform(rng, 0.05, 1),
            "l1_regularization_strength": uniform(rng, 0, 0.1),
            "l2_regularization_strength": uniform(rng, 0, 0.1),
            "l2_shrinkage_regularization_strength": uniform(rng, 0.05, 0.05) if chance(rng, 0.5) else 0.0,
        }
    return {}
