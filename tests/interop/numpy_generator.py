"""How far layers of a generator are from what NumPy makes of the same noise.

    numpy_generator.py SOURCE_ROOT CHECKPOINT_FOLDER FOLDER

FOLDER has what `predict --json` wrote of the layers noise, g_relu and g_image. Prints JSON: by layer, the largest
difference.
"""

import json
import pathlib
import sys

import numpy as np

import numpy_forward
import read_checkpoint


def outputs_of(folder, layer):
    with open(pathlib.Path(folder, layer)) as file:
        return np.array([p["outputs"] for p in json.load(file)["predictions"]], np.float64)


def main():
    source_root, checkpoint, folder = sys.argv[1:]
    manifest, tensors = read_checkpoint.read(checkpoint)
    model_pb2, model, _ = numpy_forward.parse(source_root, manifest)
    # The generator alone: its layers take one another in turn.
    del model.layers[:[layer.name for layer in model.layers].index("noise") + 1]
    del model.layers[[layer.name for layer in model.layers].index("g_image") + 1:]
    values = numpy_forward.Forward(model_pb2, model, tensors).values(outputs_of(folder, "noise"))
    layers = ("g_relu", "g_image")
    print(json.dumps({layer: float(np.abs(values[layer] - outputs_of(folder, layer)).max()) for layer in layers}))


if __name__ == "__main__":
    main()
