"""Hostile bytes by the million: targets, what makes inputs for them, and two ways to run them.

``python -m tests.fuzz --inputs 10000000`` tries that many inputs on all targets, in whichever build is imported, and
prints what broke an invariant with the input that did it. ``python -m tests.fuzz.guided TARGET`` lets atheris (on PyPI)
choose inputs by the coverage of the plain modules. The suite tries a few hundred inputs on each target.
"""
