"""Scripts in Lua: EVAL and its family.

``engine`` is what the rest of the server speaks to; it imports Lua only when a script is to run.
``interpreter`` holds Lua, ``host_api`` is what scripts can ask of the server, ``long_running`` lets
other clients be answered while a script takes long. What a script sees is made by the chunks in
``lua/``.
"""
