"""The command `llvs`, for people who look at a store. It needs the packages of the extra "tools"; the rest of llvs needs none of them."""

#: How to install these packages. No release of llvs is on PyPI yet, so this names a checkout and a wheel file.
HOW_TO_INSTALL = (
    'install llvs with the extra "tools": pip install "./bindings/python[tools]" in a checkout, or pip install "FILE.whl[tools]"'
)
