"""The optimizer's state as a checkpoint holds it: tensors by parameter name, and scalars."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._errors import ArgumentError, MismatchError
from ._tree import Encoder, decode_plain


def is_array(value: Any) -> bool:
    """An array of any kind that has a shape; NumPy's scalars are scalars."""
    if isinstance(value, np.generic | str | bytes):
        return False
    return hasattr(value, "shape") and hasattr(value, "dtype")


class AbsentScalars(dict[str, Any]):
    """Of a checkpoint whose writer kept no `state`: asking is an error that says so."""

    def _refuse(self, *_: Any) -> Any:
        raise MismatchError("the writer of this checkpoint kept no scalars of its optimizer", code="mismatch")

    __getitem__ = __iter__ = __contains__ = __len__ = keys = values = items = get = _refuse


@dataclass
class OptimizerState:
    """What optimizer.safetensors holds.

    ``name``: "adamw", "sgd", "muon", or the class's name in lower case. ``tensors``: "<parameter>.<state key>" to array. ``scalars``: the
    rest, as JSON holds it (tuples are kept). ``params``: names of the parameters in the optimizer's own order.

    >>> import numpy
    >>> sd = {"step": 2, "lr": 0.1, "exp_avg": [numpy.zeros(2, "f4"), numpy.ones(3, "f4")]}
    >>> state = OptimizerState.from_state_dict(sd, ["a", "b"], "adamw")
    >>> sorted(state.tensors), state.scalars["lr"]
    (['a.exp_avg', 'b.exp_avg'], 0.1)
    >>> list(state.state_dict())
    ['step', 'lr', 'exp_avg']
    """

    name: str
    tensors: dict[str, Any] = field(default_factory=dict)
    scalars: dict[str, Any] = field(default_factory=dict)
    params: list[str] = field(default_factory=list)

    @classmethod
    def from_state_dict(cls, sd: Mapping[str, Any], params: Sequence[str], name: str) -> OptimizerState:
        """Take a state dict apart.

        Two shapes are known: PyTorch's, ``{"state": {index: {key: value}}, "param_groups": [...]}``; and one list for each state
        key, in the order of the parameters. ``params``: names of the parameters in the optimizer's order.

        Raises ArgumentError for an index without a name and for a value that can't be kept.

        >>> import numpy
        >>> sd = {"state": {0: {"step": 3, "exp_avg": numpy.zeros(2)}}, "param_groups": [{"lr": 0.1, "betas": (0.9, 0.99), "params": [0]}]}
        >>> OptimizerState.from_state_dict(sd, ["w"], "adamw").state_dict() == sd
        True
        """
        names = list(params)
        if len(set(names)) != len(names):
            raise ArgumentError("params: a name stands twice", code="argument")
        state = cls(name=name, params=names)
        if isinstance(sd.get("state"), Mapping) and isinstance(sd.get("param_groups"), list | tuple):
            _take_torch(state, sd)
        else:
            _take_flat(state, sd)
        return state

    def state_dict(self) -> dict[str, Any]:
        """The inverse of ``from_state_dict``: the same nesting, the same order, the same bits.

        Of a checkpoint that was written elsewhere: one list for each state key in the order of ``params``.
        """
        layout = self.scalars.get("layout")
        if isinstance(layout, dict) and layout.get("kind") == "torch":
            return _give_torch(self, layout)
        return _give_flat(self, layout if isinstance(layout, dict) else {})

    def lr(self) -> float | None:
        """The learning rate: `lr`, or the first group's; None when there is none."""
        value = self.scalars.get("lr")
        groups = self.scalars.get("param_groups")
        if value is None and isinstance(groups, list | tuple) and groups and isinstance(groups[0], Mapping):
            value = groups[0].get("lr")
            if value is None:
                value = self.tensors.get("param_groups.0.lr")
        if value is None or isinstance(value, bool):
            return None
        try:
            return float(value)
        except (TypeError, ValueError):
            return None


def _take_torch(state: OptimizerState, sd: Mapping[str, Any]) -> None:
    keys: list[list[Any]] = []
    scalars: dict[str, dict[str, Any]] = {}
    for index, values in sd["state"].items():
        if not isinstance(index, int) or not 0 <= index < len(state.params):
            raise ArgumentError(f"the state of parameter {index!r} has no name: {len(state.params)} were given", code="argument")
        param = state.params[index]
        keys.append([index, list(values)])
        for key, value in values.items():
            if is_array(value):
                state.tensors[f"{param}.{key}"] = value
            else:
                scalars.setdefault(param, {})[key] = value
    groups = []
    for i, group in enumerate(sd["param_groups"]):
        kept = {}
        for key, value in group.items():
            if is_array(value):
                state.tensors[f"param_groups.{i}.{key}"] = value
            else:
                kept[key] = value
        groups.append(kept)
    state.scalars["param_groups"] = groups
    if scalars:
        state.scalars["state"] = scalars
    extra = {key: value for key, value in sd.items() if key not in ("state", "param_groups")}
    if extra:
        state.scalars["extra"] = extra
    state.scalars["layout"] = {
        "kind": "torch",
        "keys": keys,
        "groups": [list(group) for group in sd["param_groups"]],
        "order": list(sd),
        "is_tuple": isinstance(sd["param_groups"], tuple),
    }


def _give_torch(state: OptimizerState, layout: Mapping[str, Any]) -> dict[str, Any]:
    scalars = state.scalars.get("state", {})
    per_param: dict[int, dict[str, Any]] = {}
    for index, keys in layout["keys"]:
        param = state.params[index]
        per_param[index] = {
            key: state.tensors[f"{param}.{key}"] if f"{param}.{key}" in state.tensors else scalars[param][key] for key in keys
        }
    groups: Any = []
    for i, (group, keys) in enumerate(zip(state.scalars["param_groups"], layout["groups"], strict=True)):
        groups.append({key: group[key] if key in group else state.tensors[f"param_groups.{i}.{key}"] for key in keys})
    whole = {"state": per_param, "param_groups": tuple(groups) if layout["is_tuple"] else groups, **state.scalars.get("extra", {})}
    return {key: whole[key] for key in layout["order"]}


def _take_flat(state: OptimizerState, sd: Mapping[str, Any]) -> None:
    shapes: list[tuple[int, ...]] | None = None
    lists: list[str] = []
    for key, value in sd.items():
        if not isinstance(key, str):
            raise ArgumentError(f"the optimizer's state has the key {key!r}, expected texts", code="argument")
        if isinstance(value, list | tuple) and len(value) == len(state.params) > 0 and all(is_array(item) for item in value):
            found = [tuple(item.shape) for item in value]
            if shapes is None:
                shapes = found
            if found == shapes:
                for param, item in zip(state.params, value, strict=True):
                    state.tensors[f"{param}.{key}"] = item
                lists.append(key)
                continue
        if is_array(value):
            state.tensors[f"pawl_scalar.{key}"] = value
        else:
            state.scalars[key] = value
    if "layout" in sd or "params" in sd:
        raise ArgumentError("the optimizer's state has the key 'layout' or 'params', which are the checkpoint's", code="argument")
    state.scalars["layout"] = {"kind": "flat", "order": list(sd), "lists": lists, "tuples": [k for k in lists if isinstance(sd[k], tuple)]}


def _give_flat(state: OptimizerState, layout: Mapping[str, Any]) -> dict[str, Any]:
    params = state.params
    if "order" not in layout:
        suffixes = sorted({name.rpartition(".")[2] for name in state.tensors})
        if not params:
            params = sorted({name.rpartition(".")[0] for name in state.tensors})
        scalars = {key: value for key, value in state.scalars.items() if key != "layout"}
        return {**scalars, **{key: [state.tensors[f"{p}.{key}"] for p in params if f"{p}.{key}" in state.tensors] for key in suffixes}}
    out: dict[str, Any] = {}
    for key in layout["order"]:
        if key in layout["lists"]:
            items = [state.tensors[f"{param}.{key}"] for param in params]
            out[key] = tuple(items) if key in layout["tuples"] else items
        elif key in state.scalars:
            out[key] = state.scalars[key]
        else:
            out[key] = state.tensors[f"pawl_scalar.{key}"]
    return out


# ---- as JSON ----


def to_json(state: OptimizerState) -> str:
    """The metadata `state`: tuples as lists, whose places the key `tuples` keeps, so that other readers find plain JSON."""
    tuples: list[list[Any]] = []
    node = _flatten(dict(state.scalars), [], tuples)
    if state.params:
        node["params"] = list(state.params)
    if tuples:
        node["tuples"] = tuples
    plain = Encoder("optimizer").plain(node)
    return json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _flatten(value: Any, path: list[Any], tuples: list[list[Any]]) -> Any:
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _flatten(item, [*path, key], tuples) for key, item in value.items()}
    if type(value) in (list, tuple):
        if type(value) is tuple:
            tuples.append(list(path))
        return [_flatten(item, [*path, i], tuples) for i, item in enumerate(value)]
    if isinstance(value, np.generic):
        raise ArgumentError(f"optimizer{''.join(f'[{key!r}]' for key in path)}: {type(value).__name__}", code="argument")
    return value


def from_json(name: str, text: str | None, tensors: dict[str, Any]) -> OptimizerState:
    if text is None:
        return OptimizerState(name, tensors, AbsentScalars(), [])
    node = decode_plain(json.loads(text))
    tuples = node.pop("tuples", [])
    params = node.pop("params", [])
    for path in sorted(tuples, key=len, reverse=True):
        at: Any = node
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = tuple(at[path[-1]])
    return OptimizerState(name, tensors, node, params)


def optimizer_of(optimizer: Any, model: Any) -> OptimizerState | None:
    """What `optimizer=` may be: None, an OptimizerState, or an object with state_dict() beside a model with named_parameters()."""
    if optimizer is None or isinstance(optimizer, OptimizerState):
        return optimizer
    if not hasattr(optimizer, "state_dict"):
        raise TypeError(f"an optimizer is an OptimizerState or has state_dict(), not {type(optimizer).__name__}")
    if not hasattr(model, "named_parameters"):
        raise ArgumentError("an optimizer's state dict needs a model with named_parameters(): it names the parameters", code="argument")
    names = [name for name, _ in model.named_parameters()]
    return OptimizerState.from_state_dict(optimizer.state_dict(), names, type(optimizer).__name__.lower())
