import CLLVS
import LLVS
