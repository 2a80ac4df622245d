"""Safetensors files as NumPy arrays: the names and arguments of ``safetensors.numpy``.

>>> import numpy
>>> from pawl.numpy import load_file, save_file
>>> save_file({"weight": numpy.zeros((2, 2), "f4")}, "model.safetensors")
>>> load_file("model.safetensors")["weight"].dtype
dtype('float32')
"""

from ._arrays import TensorDict
from ._files import load, load_file, save, save_file

__all__ = ["TensorDict", "load", "load_file", "save", "save_file"]
