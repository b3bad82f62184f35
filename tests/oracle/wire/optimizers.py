"""The optimizers of scripts as the protocol names them, and what they begin with."""

AVERAGE = "ExponentialMovingAverage"


def _field(name):
    """Name of the field of OptimizerDef, and what the name adds to the hyper-parameters."""
    return {
        "nesterov": ("momentum", {"nesterov": True}),
        "rmsprop_centered": ("rmsprop", {"centered": True}),
        "adamw": ("adam", {}),
        "lazy_adam": ("adam", {"lazy": True}),
    }.get(name, (name, {}))


def definition(protos, script):
    field, more = _field(script["optimizer"])
    fields = {field: {**script["hyper_parameters"], **more}}
    if "averages" in script:
        fields["variable_averages"] = script["averages"]
    return protos["job"].OptimizerDef(**fields)


def first_slots(script, initial):
    """{slot: flat values} of a variable with these initial values."""
    hyper = script["hyper_parameters"]
    adam = {"m": 0, "v": 0}
    slots = {
        "momentum": {"momentum": 0},
        "nesterov": {"momentum": 0},
        "adagrad": {"accumulator": hyper.get("initial_accumulator_value")},
        "adadelta": {"accum": 0, "accum_update": 0},
        "rmsprop": {"rms": 1, "momentum": 0},
        "rmsprop_centered": {"rms": 1, "mg": 0, "momentum": 0},
        "adam": adam,
        "adamw": adam,
        "lazy_adam": adam,
        "ftrl": {"accum": hyper.get("initial_accumulator_value"), "linear": 0},
    }.get(script["optimizer"], {})
    filled = {name: [value] * len(initial) for name, value in slots.items()}
    if "averages" in script:
        filled[AVERAGE] = initial
    return filled


def first_scalars(script):
    if script["optimizer"] not in ("adam", "adamw", "lazy_adam"):
        return {}
    hyper = script["hyper_parameters"]
    return {"beta1_power": hyper["beta1"], "beta2_power": hyper["beta2"]}


def first_tensors(script, variables):
    """The tensors of a checkpoint. `variables`: {name: (dtype, shape, flat values)}."""
    tensors = dict(variables)
    for name, (dtype, shape, values) in variables.items():
        for slot, slot_values in first_slots(script, values).items():
            tensors[f"{name}/{slot}"] = (dtype, shape, slot_values)
    for name, value in first_scalars(script).items():
        tensors[f"optimizer/{name}"] = ("float32", [], [value])
    return tensors


def average_of(variable):
    return f"{variable}/{AVERAGE}"
