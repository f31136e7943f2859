"""The sub-commands of `torch-swizzle`, a module each.

A module has `add_parser(commands)`, which adds its parser with `run` as a default: a function from
the parsed options to the exit status. A new sub-command is a new module, named in `COMMANDS`.
"""

from . import advise, banks, info, profile, translate

COMMANDS = (banks, translate, advise, profile, info)
