"""Models that leave Python: the ONNX form of every classifier, for skl2onnx and by itself.

Importing this module teaches skl2onnx's own ``to_onnx`` the classifiers of Polymargin.
"""

try:
    import onnx  # noqa: F401
    import skl2onnx  # noqa: F401
except ImportError as error:
    raise ImportError('ONNX needs the extra [onnx]: pip install "polymargin[onnx]".') from error

from polymargin.export.check import Agreement, compare
from polymargin.export.convert import to_onnx
from polymargin.export.converters import register

register()

__all__ = ["Agreement", "compare", "to_onnx"]
