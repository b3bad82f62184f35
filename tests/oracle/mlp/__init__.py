"""The same network on the same digits, trained by Lockstep and by TensorFlow."""
