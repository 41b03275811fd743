"""The inspector: a page in the browser that shows what is in a store.

    python -m llvs.inspector notes.llvs

It needs the packages of the extra "tools"; no other part of llvs needs them. It serves one page on 127.0.0.1 to browsers that open the
address with the token in it. It only reads unless it is started with `--write`. It shows the bytes of values and never runs them.
"""
