"""A generative adversarial network whose two losses take turns, each with an RMSProp of its own."""
from .draw import chance, normal, plain, uniform
from .tf1 import session, tf

# As in MirroredStrategy's example: ten steps of the generator, one of the discriminator.
_TURNS = {"generator": 10, "discriminator": 1}
_CYCLES = 2
_ACTIVATIONS = {"tanh": tf.tanh, "sigmoid": tf.sigmoid, "relu": tf.nn.relu}


class _Draw:
    """What the script is about: an example has the real numbers, then those that the generator begins with."""

    def __init__(self, rng):
        self.batch = int(rng.integers(1, 7))
        self.real = int(rng.integers(2, 6))
        self.latent = int(rng.integers(1, 5))
        self.widths = {part: [int(n) for n in rng.integers(2, 7, int(rng.integers(1, 3)))] for part in "gd"}
        self.activations = {part: str(rng.choice(list(_ACTIVATIONS))) for part in "gd"}
        self.real_target = 1.0 if chance(rng, 0.5) else 0.875
        self.optimizers = {
            name: {
                "learning_rate": uniform(rng, 0.001, 0.05),
                "decay": uniform(rng, 0.5, 0.99),
                "momentum": uniform(rng, 0.1, 0.9) if chance(rng, 0.5) else 0.0,
                "epsilon": uniform(rng, 1e-6, 1e-2),
            }
            for name in _TURNS
        }
        self.initial = {}
        for name, shape in self.shapes():
            self.initial[name] = (normal(rng, shape, "float32") * 0.7).astype("float32")

    def layers(self, part):
        """(name, inputs, units) of each dense layer."""
        widths = [self.latent if part == "g" else self.real, *self.widths[part], self.real if part == "g" else 1]
        return [(f"{part}_dense{i}", widths[i], widths[i + 1]) for i in range(len(widths) - 1)]

    def shapes(self):
        for part in "dg":
            for name, inputs, units in self.layers(part):
                yield f"{name}/kernel", [inputs, units]
                yield f"{name}/bias", [units]

    def model(self):
        """The model file."""
        lines = [f"input_shape: {self.real + self.latent}"]

        def add(name, kind, more=""):
            lines.append(f'layers {{ name: "{name}" {more} {kind} }}')

        def stack(part, prefix, shares):
            layers = self.layers(part)
            for i, (name, _, units) in enumerate(layers):
                add(prefix + name, f"dense {{ units: {units} }}", f'variables_of: "{name}"' if shares else "")
                if i + 1 < len(layers):
                    add(f"{prefix}{name}_active", f"{self.activations[part]} {{}}")

        add("real", f"columns {{ count: {self.real} }}")
        stack("d", "", False)
        add("d_real_loss", f"sigmoid_cross_entropy {{ target: {self.real_target} }}")
        add("latent", f"columns {{ first: {self.real} count: {self.latent} }}", 'inputs: "input"')
        stack("g", "", False)
        stack("d", "made_", True)
        add("d_made_loss", "sigmoid_cross_entropy { target: 0 }")
        add("g_loss", "sigmoid_cross_entropy { target: 1 }", f'inputs: "made_{self.layers("d")[-1][0]}"')
        return "\n".join(lines)


class _Graph:
    """The ops of the script, in the default graph."""

    def __init__(self, draw):
        self.variables = {name: tf.get_variable(name, initializer=value) for name, value in draw.initial.items()}
        self.features = tf.placeholder(tf.float32, [draw.batch, draw.real + draw.latent])

        def stack(part, values):
            layers = draw.layers(part)
            for i, (name, _, _) in enumerate(layers):
                values = tf.matmul(values, self.variables[f"{name}/kernel"]) + self.variables[f"{name}/bias"]
                if i + 1 < len(layers):
                    values = _ACTIVATIONS[draw.activations[part]](values)
            return values

        def loss(logits, target):
            targets = tf.fill(logits.shape, target)
            return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits))

        real = stack("d", self.features[:, : draw.real])
        made = stack("d", stack("g", self.features[:, draw.real :]))
        self.losses = {
            "generator": loss(made, 1.0),
            "discriminator": loss(real, draw.real_target) + loss(made, 0.0),
        }
        self.apply = {}
        for name, own in self.losses.items():
            variables = [v for key, v in self.variables.items() if key.startswith(name[0] + "_")]
            optimizer = tf.train.RMSPropOptimizer(**draw.optimizers[name])
            pairs = optimizer.compute_gradients(own, variables)
            with tf.control_dependencies([own] + [gradient for gradient, _ in pairs]):
                self.apply[name] = optimizer.apply_gradients(pairs)


def _step(rng, running, ops, draw, name):
    features = normal(rng, [draw.batch, draw.real + draw.latent], "float32")
    feed = {ops.features: features}
    loss, _ = running.run([ops.losses[name], ops.apply[name]], feed)
    return {
        "features": plain(features),
        "loss": float(loss),
        "variables": {key: plain(value) for key, value in running.run(ops.variables).items()},
    }


def record_gan(rng):
    draw = _Draw(rng)
    with tf.Graph().as_default() as graph:
        ops = _Graph(draw)
        with session(graph) as running:
            running.run(tf.global_variables_initializer())
            turns = [name for name, steps in _TURNS.items() for _ in range(steps)] * _CYCLES
            log = [_step(rng, running, ops, draw, name) for name in turns]
    return {
        "kind": "gan",
        "model": draw.model(),
        "losses": [
            {"name": "generator", "steps": _TURNS["generator"], "loss": ["g_loss"], "trains": "g_",
             "optimizer": draw.optimizers["generator"]},
            {"name": "discriminator", "steps": _TURNS["discriminator"], "loss": ["d_real_loss", "d_made_loss"],
             "trains": "d_", "optimizer": draw.optimizers["discriminator"]},
        ],
        "batch": draw.batch,
        "initial": {key: plain(value) for key, value in draw.initial.items()},
        "log": log,
    }
