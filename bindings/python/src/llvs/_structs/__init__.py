"""The structs of include/llvs.h, field by field. A test compares layout and names with the header.

Pointers are plain addresses (`c_void_p`): ctypes reads and writes those fastest, and whoever fills a struct
keeps alive what it points to.
"""

from .common import *
from .values import *
from .stores import *
from .merging import *
from .documents import *
from .exchanges import *
from .host import *
from .testing import *
