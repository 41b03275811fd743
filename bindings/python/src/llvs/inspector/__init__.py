"""The inspector: a page in the browser that shows what is in a store.

    python -m llvs.inspector notes.llvs

It needs the packages of the extra "tools"; the rest of llvs needs none of them. It serves one page on 127.0.0.1 to whoever has its address
with the token in it, reads only unless it is told otherwise, and shows values as what they are, without ever interpreting them.
"""
