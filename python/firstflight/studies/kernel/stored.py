"""Quantities in a file: of a run, whose records are then read once, or of the evidence, where claims need no run.

An npz archive: `np.load(file)["q.NAME"]` are the values of a quantity, and "about" has their labels as JSON.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from firstflight.studies.kernel.quantity import Quantity
from firstflight.studies.kernel.sample import METHOD

_ABOUT = "about"
# What numpy and zipfile raise for changed bytes (RuntimeError: a compression or an encryption that nobody wrote), and
# what another archive or array gives.
_DAMAGED = (
    AttributeError,
    EOFError,
    KeyError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def packed(arrays: Mapping[Quantity, xr.DataArray], origin: str = "") -> bytes:
    """The content of the file. `origin` stands for all that the values depend on: `read` asks for the same."""
    labels = {of.name: {str(dim): array[dim].values.tolist() for dim in array.dims} for of, array in arrays.items()}
    intervals = {of.name: str(array[METHOD].item()) for of, array in arrays.items() if METHOD in array.coords}
    about = json.dumps({"origin": origin, "labels": labels, "intervals": intervals})
    values: dict[str, Any] = {_ABOUT: np.array(about), **{f"q.{of.name}": array.values for of, array in arrays.items()}}
    content = io.BytesIO()
    np.savez_compressed(content, **values)
    return content.getvalue()


def read(
    path: Path,
    quantities: Sequence[Quantity],
    coordinates: Mapping[str, Mapping[str, Sequence[Any]]],
    origin: str = "",
) -> dict[Quantity, xr.DataArray] | None:
    """Those of `quantities` that a file has; None without a sound file of this origin with these labels.
    `coordinates` by the name of the grid.
    """
    if not path.is_file():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            about = json.loads(stored[_ABOUT].item())
            if about["origin"] != origin:
                return None
            arrays = {
                of: _array(of, stored[f"q.{of.name}"], about["labels"][of.name], about["intervals"].get(of.name))
                for of in quantities
                if of.name in about["labels"]
            }
    except _DAMAGED:
        return None
    for of, array in arrays.items():
        # Labels that are names of the records are not known without a run.
        known = {key: labels for key, labels in of.all_labels(coordinates[of.grid]).items() if labels}
        if any(key not in array.dims or array[key].values.tolist() != labels for key, labels in known.items()):
            return None
    return arrays


def _array(of: Quantity, values: np.ndarray, labels: Mapping[str, Sequence[Any]], interval: str | None) -> xr.DataArray:
    array = of.described(xr.DataArray(values, labels, list(labels)))
    return array if interval is None else array.assign_coords({METHOD: interval})
