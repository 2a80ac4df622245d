"""The same as ``pawl.jax``, under the name that the safetensors package has for it."""

from .jax import load, load_checkpoint, load_file, save, save_checkpoint, save_file

__all__ = ["load", "load_checkpoint", "load_file", "save", "save_checkpoint", "save_file"]
