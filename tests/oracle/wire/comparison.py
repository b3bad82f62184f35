"""What differs between TensorFlow's answers and ours; tests/oracle/comparison.h in Python."""
import math

TOLERANCES = {"float32": 1e-6, "float64": 1e-12}


def flatten(nested):
    if not isinstance(nested, list):
        return [nested]
    return [number for element in nested for number in flatten(element)]


class Comparison:
    def __init__(self):
        self.entry = -1
        self.differences = []
        self.worst_share = 0.0

    def equal(self, what, expected, got):
        if expected != got:
            self.differences.append(f"log entry {self.entry}, {what}: expected {expected}, got {got}")

    def near(self, what, dtype, expected, got):
        expected = flatten(expected)
        if len(expected) != len(got):
            self.equal(f"elements of {what}", len(expected), len(got))
            return
        tolerance = TOLERANCES[dtype] * max(map(abs, expected), default=0)
        for i, (wanted, came) in enumerate(zip(expected, got)):
            distance = abs(wanted - came)
            if distance == 0:
                continue
            share = distance / tolerance if tolerance > 0 and not math.isnan(distance) else math.inf
            self.worst_share = max(self.worst_share, share)
            if share > 1:
                self.equal(f"{what}[{i}]", wanted, came)
