"""The optimizers that scripts are recorded of, with random hyper-parameters."""
from .draw import chance, uniform
from .tf1 import tf


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
    if name == "adam":
        return {
            "beta1": uniform(rng, 0.5, 0.95),
            "beta2": uniform(rng, 0.9, 0.9999),
            "epsilon": uniform(rng, 1e-8, 1e-3),
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
