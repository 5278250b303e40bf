"""The course's interactive figures; each also works without a kernel, as a picture and as words."""

from course.figures.accumulating import AccumulationTimeline
from course.figures.attention import AttentionExplorer
from course.figures.batches import BatchExplorer
from course.figures.beginnings import BeginningsExplorer
from course.figures.boxes import Boxes, IndexExplorer
from course.figures.broadcasting.figure import BroadcastingExplorer
from course.figures.captures import CaptureExplorer
from course.figures.collapse import CollapseExplorer
from course.figures.costs import CostExplorer
from course.figures.curves import DescentExplorer, SecantExplorer
from course.figures.floats.figure import FloatExplorer
from course.figures.freezing import FreezeExplorer
from course.figures.graph_explorer.figure import GraphExplorer
from course.figures.jacobians import JacobianExplorer
from course.figures.leaf_board.figure import LeafBoard
from course.figures.live import LiveCurves
from course.figures.loops import LoopsExplorer
from course.figures.losses import CrossEntropyExplorer
from course.figures.matrix_product import ProductExplorer
from course.figures.memory import MemoryTimeline
from course.figures.memory_explorer.figure import MemoryExplorer
from course.figures.passes import PassExplorer
from course.figures.pieces import MemoryMap, PiecesExplorer
from course.figures.pixels import Pixels
from course.figures.predict.figure import Predict
from course.figures.ring import RingExplorer
from course.figures.scaling import ScalerTimeline
from course.figures.sliding_kernel import SlidingKernelExplorer
from course.figures.stepper.figure import BackwardStepper
from course.figures.stepper.own_engine import draw
from course.figures.surface import SurfaceExplorer
from course.figures.tuning import FineTuningExplorer

__all__ = [
    "AccumulationTimeline",
    "AttentionExplorer",
    "BackwardStepper",
    "BatchExplorer",
    "BeginningsExplorer",
    "Boxes",
    "BroadcastingExplorer",
    "CaptureExplorer",
    "CollapseExplorer",
    "CostExplorer",
    "CrossEntropyExplorer",
    "DescentExplorer",
    "FineTuningExplorer",
    "FloatExplorer",
    "FreezeExplorer",
    "GraphExplorer",
    "IndexExplorer",
    "JacobianExplorer",
    "LeafBoard",
    "LiveCurves",
    "LoopsExplorer",
    "MemoryExplorer",
    "MemoryMap",
    "MemoryTimeline",
    "PassExplorer",
    "PiecesExplorer",
    "Pixels",
    "Predict",
    "ProductExplorer",
    "RingExplorer",
    "ScalerTimeline",
    "SecantExplorer",
    "SlidingKernelExplorer",
    "SurfaceExplorer",
    "draw",
]
