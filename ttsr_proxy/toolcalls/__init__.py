"""What a tool call would write, and where: JSON fragments in, (paths, added text) views out."""

from ttsr_proxy.toolcalls.families import FamilyTable, ToolFamilyError
from ttsr_proxy.toolcalls.partial import close_partial
from ttsr_proxy.toolcalls.prose import ProseEditReader, ProseFormat, formats_told
from ttsr_proxy.toolcalls.reader import ToolCallReader, views_of_call
from ttsr_proxy.toolcalls.views import View, ViewDelta

__all__ = [
    "FamilyTable",
    "ProseEditReader",
    "ProseFormat",
    "ToolCallReader",
    "ToolFamilyError",
    "View",
    "ViewDelta",
    "close_partial",
    "formats_told",
    "views_of_call",
]
