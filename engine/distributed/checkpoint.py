"""Checkpoints that all ranks write together, and any number of ranks reads.

A checkpoint is a folder: files in safetensors' format, one from each rank, and ``.metadata``, JSON that says which
value is in which file.  That is written last, in one step, so that a job that dies while it saves leaves the checkpoint
before as it was.  Loading runs no code.
"""

import json
import os
import uuid
from pathlib import Path

from .. import serialization
from ..arrays.warn import warn
from ..autograd.modes import no_grad
from ..collectives import calls
from ..collectives.groups import given_group, is_initialized
from ..core.tensor import Tensor
from ..help import public

METADATA = ".metadata"
ALONE = "torch.distributed is unavailable or uninitialized, assuming the intent is to save in a single process."


class CheckpointException(RuntimeError):
    """An error in saving or loading a checkpoint."""


class FileSystemWriter:
    """A folder for ``save`` to write into."""

    def __init__(self, path, single_file_per_rank=True, sync_files=True, thread_count=1, overwrite=True):
        self.path, self.sync_files, self.overwrite = Path(path), sync_files, overwrite


class FileSystemReader:
    """A folder for ``load`` to read from."""

    def __init__(self, path):
        self.path = Path(path)

    def read_metadata(self):
        """Return the metadata of the checkpoint."""
        return Metadata(metadata_of(self.path)["values"])


class Metadata:
    """The contents of a checkpoint: ``state_dict_metadata``, {name: facts about the value}."""

    def __init__(self, values):
        self.state_dict_metadata = values


def folder_of(checkpoint_id, storage):
    if checkpoint_id is None and storage is None:
        raise RuntimeError("Cannot determine which storage to use: give checkpoint_id, a folder")
    return Path(checkpoint_id if checkpoint_id is not None else storage.path)


def leaves(tree, path=()):
    """(path, value) of what is in nested dicts and lists; an empty one is a value."""
    if isinstance(tree, dict | list) and tree:
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(value, (*path, key))
    else:
        yield path, tree


def lists(tree, path=()):
    """The paths of the lists among nested dicts and lists."""
    if isinstance(tree, dict | list) and tree:
        if isinstance(tree, list):
            yield list(path)
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from lists(value, (*path, key))


def name_of(path):
    """A path as one word, as PyTorch has it: model.0.weight."""
    return ".".join(map(str, path))


def ranks_of(process_group, no_dist):
    """The group that works together; None for one process alone."""
    if no_dist or not is_initialized():
        if not no_dist:
            warn(ALONE)
        return None
    return given_group(process_group)


def save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, no_dist=False,
         use_collectives=True):  # fmt: skip
    """Write a nested dict of tensors and plain values: what several ranks have under a name is written by one."""
    folder, ranks = folder_of(checkpoint_id, storage_writer), ranks_of(process_group, no_dist)
    rank = ranks.rank() if ranks else 0
    mine = {name_of(path): (path, value) for path, value in leaves(state_dict)}
    about = {name: [list(path), size_of(value)] for name, (path, value) in mine.items()}
    mark = uuid.uuid4().hex[:12]
    mine_too = [about, mark, list(lists(state_dict))]
    every = calls.all_gather_values(mine_too, ranks) if ranks else [mine_too]
    tag = every[0][1]
    owner = shared_out([names for names, *_ in every])
    folder.mkdir(parents=True, exist_ok=True)
    file = f"{tag}_{rank}.safetensors"
    serialization.save({name: detached(value) for name, (_, value) in mine.items() if owner[name] == rank},
                       folder / file)  # fmt: skip
    problem = None
    if ranks:
        calls.barrier(ranks)
    if rank == 0:
        values, sequences = {}, []
        for names, _, theirs in every:
            sequences += [path for path in theirs if path not in sequences]
            for name, (path, (size, shape, kind)) in names.items():
                where = f"{tag}_{owner[name]}.safetensors"
                values[name] = {"path": path, "file": where, "size": size, "shape": shape, "dtype": kind}
        problem = write_metadata(folder, {"version": 1, "ranks": len(every), "lists": sequences, "values": values})
    if ranks:
        calls.barrier(ranks)
    if problem:
        raise problem
    return Metadata(about)


def detached(value):
    return value.detach() if isinstance(value, Tensor) else value


def size_of(value):
    """[bytes, shape, dtype] of a tensor."""
    if isinstance(value, Tensor):
        return [value.numel() * value.element_size(), list(value.shape), value.dtype.name]
    return [8, None, type(value).__name__]


def shared_out(every):
    """Return {name: rank that writes it}: of its owners the one with least to write; the largest come first."""
    have: dict = {}
    for rank, names in enumerate(every):
        for name, (_, (size, *_)) in names.items():
            have.setdefault(name, (size, []))[1].append(rank)
    load, owner = [0] * len(every), {}
    for name, (size, ranks) in sorted(have.items(), key=lambda item: (-item[1][0], item[0])):
        owner[name] = min(ranks, key=lambda rank: (load[rank], rank))
        load[owner[name]] += size
    return owner


def write_metadata(folder, found):
    """Let a checkpoint be the newest: from one moment to the next.  Files of older ones go."""
    try:
        beside = folder / f"{METADATA}.{uuid.uuid4().hex[:8]}"
        with beside.open("w", encoding="utf-8") as f:
            json.dump(found, f)
            f.flush()
            os.fsync(f.fileno())
        beside.replace(folder / METADATA)
        used = {entry["file"] for entry in found["values"].values()}
        for old in folder.glob("*_*.safetensors"):
            if old.name not in used:
                old.unlink(missing_ok=True)
    except OSError as e:
        return e
    return None


def metadata_of(folder):
    """Read ``.metadata``.  CheckpointException if the checkpoint is not whole."""
    try:
        found = json.loads((folder / METADATA).read_text(encoding="utf-8"))
        if found["version"] != 1:
            raise CheckpointException(f"{folder} was written by a newer version of the engine")
        for name, entry in found["values"].items():
            file = entry["file"]
            if Path(file).name != file or not (folder / file).is_file():
                raise CheckpointException(f"{folder} is not whole: {file}, which has {name}, is not there")
        return found
    except FileNotFoundError:
        raise CheckpointException(f"{folder} holds no whole checkpoint: it has no {METADATA}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise CheckpointException(f"{folder / METADATA} is damaged ({type(e).__name__}: {e})") from None


class Files:
    """The values in the files of a checkpoint, each file opened once."""

    def __init__(self, folder):
        found = metadata_of(folder)
        self.folder, self.values, self.lists, self.open = folder, found["values"], found["lists"], {}

    def __getitem__(self, name):
        file = self.values[name]["file"]
        if file not in self.open:
            self.open[file] = serialization.load(self.folder / file, "cpu")
        return self.open[file][name]


def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Put the values of a checkpoint into a nested dict: into its tensors in place, others as new values.

    RuntimeError for a name that the checkpoint has not, and for another shape.
    """
    files = Files(folder_of(checkpoint_id, storage_reader))
    for path, value in list(leaves(state_dict)):
        name = name_of(path)
        if name not in files.values:
            if value is not None and isinstance(value, dict | list):
                continue  # empty here, so nothing is asked for
            raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
        new = files[name]
        if isinstance(value, Tensor) and isinstance(new, Tensor):
            if new.shape != value.shape:
                sizes = f"saved {new.shape} and current: {value.shape}"
                raise CheckpointException(f"Size mismatch between {sizes} for {name}")
            with no_grad():
                value.copy_(new)
        else:
            put(state_dict, path, new)


def put(tree, path, value):
    *way, last = path
    for key in way:
        tree = tree[key]
    tree[last] = value


def _load_state_dict_from_keys(keys=None, *, checkpoint_id=None, storage_reader=None, process_group=None):
    """The nested dict that a checkpoint holds, or of it what is below some names."""
    files = Files(folder_of(checkpoint_id, storage_reader))
    keys = None if keys is None else {keys} if isinstance(keys, str) else set(keys)
    found: dict = {}
    for name, entry in files.values.items():
        if keys is None or any(name == key or name.startswith(f"{key}.") for key in keys):
            *way, last = entry["path"]
            tree = found
            for key in way:
                tree = tree.setdefault(key, {})
            tree[last] = files[name]
    for path in sorted(files.lists, key=len, reverse=True):  # from the inside out
        below = found
        for key in path:
            below = below.get(key) if isinstance(below, dict) else None
        if isinstance(below, dict):
            put(found, path, [below[i] for i in sorted(below)])
    return found


__dir__ = public("distributed.checkpoint", globals())
