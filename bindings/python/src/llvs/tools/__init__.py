"""The command `llvs`, which shows and changes a store. It needs the packages of the extra "tools"; no other part of llvs needs them."""

#: How to install these packages. No release of llvs is on PyPI yet, so this names a checkout and a wheel file.
HOW_TO_INSTALL = (
    'install llvs with the extra "tools": pip install "./bindings/python[tools]" in a checkout, or pip install "FILE.whl[tools]"'
)
