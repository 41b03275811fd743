"""The command `llvs`, for people who look at a store. Comes with `pip install "llvs[tools]"`; nothing else of the package needs it."""
